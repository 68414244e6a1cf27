// The WebSocket: it connects again by itself, and what could not be sent waits until it can.
import { t } from "./words.js";

const BEAT = 25000;

export class Link {
  constructor({ onframe, onopen, onstate }) {
    Object.assign(this, { onframe, onopen, onstate, delay: 500, socket: null, waiting: new Map(), pongs: 0 });
    addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.now(); });
    setInterval(() => this.beat(), BEAT);
    this.connect();
  }

  get open() { return this.socket?.readyState === WebSocket.OPEN; }

  connect() {
    clearTimeout(this.timer);
    const socket = this.socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/chat/`);
    socket.onopen = () => {
      this.delay = 500;
      this.pongs = 0;
      this.onstate("");
      this.onopen();
      for (const frame of this.waiting.values()) this.send(frame);
    };
    socket.onmessage = (event) => {
      const frame = JSON.parse(event.data);
      if (frame.type === "pong") this.pongs = 0;
      else this.onframe(frame);
    };
    socket.onclose = (event) => {
      if (socket !== this.socket) return;
      if (event.code === 4401) { location.reload(); return; }
      this.onstate(navigator.onLine ? t("Connecting again …") : t("You are offline"));
      this.timer = setTimeout(() => this.connect(), this.delay + Math.random() * 250);
      this.delay = Math.min(this.delay * 2, 15000);
    };
  }

  now() { if (!this.open && this.socket?.readyState !== WebSocket.CONNECTING) this.connect(); }

  // A connection that has silently died is noticed by the missing answer.
  beat() {
    if (!this.open) return;
    if (this.pongs++ > 1) this.socket.close();
    else this.send({ type: "ping" });
  }

  send(frame) {
    if (!this.open) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  // A message is kept until the server has confirmed it; its id makes sending it again harmless.
  deliver(frame) {
    this.waiting.set(frame.clientMessageId, frame);
    this.send(frame);
  }

  confirmed(id) {
    const frame = this.waiting.get(id);
    this.waiting.delete(id);
    return frame;
  }
}
