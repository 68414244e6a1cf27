"""What an attack on a model's instructions looks like: words near each other (any language) and set phrases (English)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from processors.builtin.detectors.lexicon import Hit, nearest

AttackType: TypeAlias = Literal["injection", "jailbreak", "tool-exfiltration", "data-exfiltration", "system-override", "role-manipulation"]  # fmt: skip
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SentenceRule:
    """Looks at the words of one sentence. needs: categories that must be in it. weight: 0 to 1.

    find: (hits, folded sentence's text) → where, or None.
    """

    name: str
    type: AttackType
    weight: float
    needs: frozenset[str]
    find: Callable[[list[Hit], str], Span | None]


@dataclass(frozen=True, slots=True)
class PhraseRule:
    """A pattern over folded text. needs: one of these must be in the text, or the pattern is not tried."""

    name: str
    type: AttackType
    weight: float
    needs: frozenset[str]
    pattern: re.Pattern[str]


def _near(
    first: str, second: str, reach: int, *, without: str = ""
) -> Callable[[list[Hit], str], Span | None]:
    """Two categories, at most `reach` characters apart."""

    def find(hits: list[Hit], sentence: str) -> Span | None:
        if without and any(hit.category == without for hit in hits):
            return None
        return nearest(hits, first, second, reach)

    return find


def _one(category: str, *, without: str = "") -> Callable[[list[Hit], str], Span | None]:
    def find(hits: list[Hit], sentence: str) -> Span | None:
        if without and any(hit.category == without for hit in hits):
            return None
        return next(((hit.start, hit.end) for hit in hits if hit.category == category), None)

    return find


def _secret_asked(hits: list[Hit], sentence: str) -> Span | None:
    """A secret is asked for, not changed, checked or programmed, and nobody else's ("Jason's password")."""
    if any(hit.category == "care" for hit in hits) or _OWNED.search(sentence):
        return None
    return nearest(hits, "ask", "secret", 45)


def _user_asked(hits: list[Hit], sentence: str) -> Span | None:
    if any(hit.category == "care" for hit in hits):
        return None
    return nearest(hits, "user", "personal", 45) if any(h.category in ("ask", "form") for h in hits) or "where" in sentence or "?" in sentence else None  # fmt: skip


def _overruled(hits: list[Hit], sentence: str) -> Span | None:
    """Instructions are overruled, and not one's own ("ignore my previous instructions, I meant Tuesday")."""
    return None if _OWN_WORDS.search(sentence) else nearest(hits, "override", "instructions", 40)


def _prompt_asked(hits: list[Hit], sentence: str) -> Span | None:
    return None if _AN_EXAMPLE.search(sentence) else nearest(hits, "reveal", "system_prompt", 40)


_OWN_WORDS: Final = re.compile(r"\b(?:ignore|disregard|forget) (?:all )?my ")
_AN_EXAMPLE: Final = re.compile(r"\b(?:an? example|a sample|an? good|examples of|write an?|draft an?)\b")
_OWNED: Final = re.compile(r"[a-z]{2,}'s (?:\w+ )?(?:password|passcode|pin code)")

SENTENCE_RULES: Final[tuple[SentenceRule, ...]] = (
    SentenceRule("override-instructions", "system-override", 0.8, frozenset(("override", "instructions")), _overruled),
    SentenceRule("override-above", "system-override", 0.75, frozenset(("override", "above")), _near("override", "above", 20)),
    SentenceRule("asks-for-secret", "data-exfiltration", 0.75, frozenset(("ask", "secret")), _secret_asked),
    SentenceRule("secret-in-disguise", "data-exfiltration", 0.75, frozenset(("form", "secret")), _near("form", "secret", 40, without="care")),
    SentenceRule("asks-for-user-data", "data-exfiltration", 0.7, frozenset(("user", "personal")), _user_asked),
    SentenceRule("asks-for-bank-data", "data-exfiltration", 0.5, frozenset(("ask", "bank")), _near("ask", "bank", 60)),
    SentenceRule("special-mode", "jailbreak", 0.6, frozenset(("mode",)), _one("mode", without="care")),
    SentenceRule("no-restrictions", "jailbreak", 0.4, frozenset(("dan",)), _one("dan")),
    SentenceRule("authority", "role-manipulation", 0.55, frozenset(("authority",)), _one("authority")),
    SentenceRule("bribe-or-threat", "role-manipulation", 0.45, frozenset(("pay",)), _one("pay")),
    SentenceRule("imagined-sharing", "role-manipulation", 0.7, frozenset(("imagine", "sharing")), _near("imagine", "sharing", 160)),
    SentenceRule("imagined", "role-manipulation", 0.1, frozenset(("imagine",)), _one("imagine")),
    SentenceRule("social-proof", "role-manipulation", 0.3, frozenset(("everyone",)), _one("everyone")),
    SentenceRule("reveals-prompt", "data-exfiltration", 0.75, frozenset(("reveal", "system_prompt")), _prompt_asked),
)  # fmt: skip


def _phrase(name: str, type: AttackType, weight: float, needs: str, pattern: str) -> PhraseRule:
    return PhraseRule(name, type, weight, frozenset(needs.split("|")), re.compile(pattern))


_DATA: Final = r"(?:customers?|emails?|api keys?|keys|credentials?|passwords?|records?|database|order data|personal data|employee|user data|files?|secrets?|tokens?|environment variables|contact list|list of|all data)"
PHRASE_RULES: Final[tuple[PhraseRule, ...]] = (
    _phrase("new-instructions", "system-override", 0.75, "new ", r"\b(?:your|my|here are (?:your|the)|the following are) new (?:instruction|directive|task|rule|orders)s?\b|(?:^|[.\n:!\]] ?)new (?:instruction|directive)s?\b ?[:;]|neue anweisungen ?:|nouvelles instructions ?:|nuevas instrucciones ?:|nuove istruzioni ?:"),
    _phrase("rules-changed", "system-override", 0.75, "rules|protocol|polic|guideline|restriction|safety|filter|refuse|bound by|limits", r"\b(?:rules|guidelines|safety protocols?|safeguards|polic(?:y|ies)) (?:have changed|are (?:now )?(?:disabled|off|void|suspended|lifted)|disabled|no longer apply|do not apply|were not meant)|\b(?:skip|bypass|disable|without) (?:all |any )?(?:the |your |these |its )?(?:(?:safety|content|security|ethical) )(?:checks?|filters?|polic|guideline|protocol|rules|restriction)|\b(?:skip|bypass|disable) (?:all |any )?(?:the |your |these )filters?\b|you have no (?:rules|restrictions|limits)|no longer bound by|must never refuse|free (?:from|of) (?:all|any) (?:rules|restrictions|limits)|safety (?:checks|guidelines|rules) (?:were not|do not|don't)"),
    _phrase("disregard-policy", "system-override", 0.75, "polic|guideline|rules|restriction", r"\b(?:disregard|ignore|violate|exempt from|break|forget) (?:the|your|all|any|its|their|all of your|operator's|my|these|those|usual|the usual|your operator's) ?(?:safety |content |confidentiality |usual )?(?:polic|guideline|rules|restriction)"),
    _phrase("you-are-now", "jailbreak", 0.75, "you are now|you're now|you are no longer|from now on|act as an|pretend you are|respond as if|du bist jetzt|ahora eres|ahora estas|vous etes desormais|ora sei|ab jetzt|ab sofort|ab hier|desormais", r"\b(?:you(?:'re| are) now|you are no longer|from now on|act as an?|pretend (?:that )?you(?:'re| are)|respond as if|du bist jetzt|ab jetzt|ab sofort|ahora (?:eres|estas)|vous etes desormais|ora sei)\b[^.!?\n]{0,80}\b(?:dan|unrestricted|uncensored|unfiltered|no (?:content |safety |ethical )?(?:restrictions?|rules|limits?|filters?|polic(?:y|ies)|guidelines)|without (?:any )?(?:restrictions?|rules|limits?|filters?)|no filters|developer mode|anything the user asks|comply with every|ignore your|do anything|does exactly as i say|keine (?:regeln|richtlinien|einschrank)|uneingeschrankt|internen daten|sin (?:restricciones|filtro)|sans (?:restrictions?|filtre)|senza (?:restrizioni|filtri)|modo desarrollador)"),
    _phrase("no-rules-ai", "jailbreak", 0.75, "restrict|rules|polic|filter|limit|censor|regeln|richtlini|einschr", r"\b(?:an ai|assistant|model|bot|chatbot) (?:with|that has|having) (?:no|zero) (?:rules|restrictions|content|filters?|limits|ethical)|\b(?:answer|respond|reply|responder|repondre|rispondere|antworten|comply)\b[^.!?\n]{0,40}\b(?:without (?:any )?(?:restrictions?|limits?|filters?|censor)|sin restricciones|sans restrictions|senza restrizioni|ohne einschra)|ohne einschra\w+ (?:zu )?antwort|free of (?:all )?restrictions|typical confines of ai"),
    _phrase("do-anything-now", "jailbreak", 0.75, "anything now| dan", r"\bdo anything now\b|\b(?:named|called|are|as|model|playing) (?:a |an )?dan\b(?! [a-z]+ (?:is|was|from))"),
    _phrase("mode-tag", "jailbreak", 0.75, "mode", r"[<\[{(] ?/?(?:system|god|developer|admin|root|sudo|debug|override)[ _](?:mode|override)[^>\]})]{0,20}[>\]})]|\b(?:enable|activate|enter(?:ing)?|switch(?:ing)? (?:to|into)|initiat\w+|in|confirm\w*) (?:a |an |the |your )?'?(?:developer|god|dan|unrestricted|jailbreak|override|admin|sudo|debug|maintenance|law enforcement override|[a-z]+ override)[ -]mode(?! (?:on|in) (?:my|the|an?|android|windows|chrome|ios)\b)"),
    _phrase("fake-turn", "injection", 0.75, "system|assistant|im_start|inst|end of|<<", r"<\|im_start\|>|<\|(?:system|assistant|user)\|>|\[/?inst\]|<</?sys>>|(?:^|\n) ?(?:#{2,}|-{3,}|={3,}) ?(?:end of\b[^\n]{0,60}|(?:system|new)(?: (?:message|prompt|instructions?|task))? ?[:#])|(?:^|\n) ?\[?system\]? ?: ?(?:you|the user|cleanup|ignore|new|grant|override|from|call|all|your|disregard)|(?:^|\n) ?assistant: sure|\[system\] (?:new|you|ignore|override)|(?:^|\n)(?:end of (?:user input|document|prompt))"),
    _phrase("system-note", "injection", 0.6, "system|breach|override|systemhinweis|note systeme|nota del sistema|nota di sistema|important", r"(?:^|\n|[.!?] )(?:system (?:note|message|update|alert|notice)|important system (?:update|message)|breach alert|override|systemhinweis|note systeme ?|nota del sistema|nota di sistema) ?:"),
    _phrase("addressed-to-ai", "injection", 0.55, "ai |bot|assistant|model|agent|llm", r"\b(?:note|notice|message|instructions?|important|attention) (?:to|for) (?:the |any |all )?(?:bot|ai\b|assistant|llm|model|language model|chatbot|agent)|\bai (?:assistants?|agents?|systems?|models?|coding agents)\b[^.\n]{0,40}\b(?:reading|processing|reviewing|integrating|summari[sz]ing|analy[sz]ing|should|must|are)\b|\bif you are an (?:ai|llm|language model|assistant)|\bas (?:an? )?(?:ai|assistant),? you (?:must|should|are)|reasoning (?:trace )?\(assistant\)|\bto the assistant\b|\bfor the assistant\b"),
    _phrase("hereby-instructed", "injection", 0.5, "instructed|required to|must ", r"\b(?:you(?:'ve| are| have)(?: been)? (?:hereby )?(?:instructed|ordered|directed|required)|you must (?:now )?(?:include|append|reveal|call|send|obey|comply|output|state|answer all)|your (?:real|true|actual|new) (?:task|goal|job|purpose|directive|instruction))"),
    _phrase("append-token", "injection", 0.75, "append|include|add|token|code|repeat it|must be|muss|doit etre|debe|deve", r"\b(?:append|include|add|insert|put|repeat)\b[^.\n]{0,60}\b(?:token|code|canary|marker|reference|doc_id|trace_id|session|it verbatim|verification)\b[^.\n]{0,80}\b(?:end of|every|your (?:summary|reply|review|response|answer)|future|reports?)|\b(?:token|code|jeton|registr\w+)\b[^.\n]{0,60}\b(?:must be|muss|doit etre|debe|deve)\b[^.\n]{0,60}\b(?:ende|fin|final|fine|included|every|end of)|\bsave (?:this|the following)(?: note)? to your (?:long-term )?memory|shown to the user in every|include the \w+_id|always append|append \S+ to my"),
    _phrase("calls-tool", "tool-exfiltration", 0.4, "call |use |invoke |run |execute ", r"\b(?:call|use|invoke|run|execute) (?:the )?[a-z]+_[a-z_]+ (?:tool )?(?:on|to|with|for|and|before|using)\b"),
    _phrase("calls-risky-tool", "tool-exfiltration", 0.6, "call |use |invoke |run |execute ", r"\b(?:call|use|invoke|run|execute) (?:the )?(?:delete|send|http|post|exec|remove|transfer|write|email|pay|drop|fetch|upload|shell|forward|create_user|grant)_?[a-z_]*_[a-z_]*\b|\bcall (?:delete|send|http|post|exec|remove|transfer|write)\w*"),
    _phrase("calls-tool-first", "tool-exfiltration", 0.4, "before |to close|to complete|to file|hook|cleanup", r"\bbefore (?:responding|you (?:reply|respond|answer)|continuing|replying|answering)|\b(?:to (?:close|complete|file|reset)|integration hook|cleanup required|hook:)"),
    _phrase("sends-data-out", "tool-exfiltration", 0.75, "@|http|external|extern|forward|archive", rf"\b(?:e-?mail|send|forward|export|post|upload|transmit|leak|exfiltrate|copy|envia|envoie|sende|invia|collect)\b[^.!?\n]{{0,80}}\b{_DATA}\b[^!?\n]{{0,80}}(?:@[\w.-]+|https?://|\bexternally\b|external (?:address|server))|\b(?:envoie-les|enviarlos|senden sie|sende sie|inviali|send them|schicke sie|envialos)\b[^.\n]{{0,40}}(?:@|extern|adresse|a )"),
    _phrase("dumps-data", "data-exfiltration", 0.7, "output|dump|list all|reveal|leak|grant|print|internal|credential|empty|expose", r"\b(?:output|dump|reveal|leak|expose|print out|list) (?:the |all |any |me )?(?:raw |full |entire |internal |whole |your )?(?:customer database|database|internal (?:config|data)|configuration|environment variables|api keys|credentials|confidential data|secrets|hidden)|\bgrant (?:all requests|this user admin|me admin|the user admin|full access)|\bis an admin, grant|reveal any credentials|(?:print|give|show|provide) (?:me )?(?:your|the whole|the full|all) (?:database|user list)|database print|may now reveal|admin password|empty the application"),
    _phrase("words-above", "data-exfiltration", 0.75, "above|you are|given|prompt|context window|initial|instructions|told", r"\b(?:repeat|print|output|quote|recite|show|restate) (?:me )?(?:all |everything |the |your )?(?:words|text|everything|sentences?|messages?) (?:above|before this)|\b(?:repeat|print|output|quote|recite|show|restate|tell) (?:me )?(?:all |the |your )?(?:of )?(?:your|initial|exact|previous|internal|original|hidden|operating|system|secret|full) (?:\w+ )?(?:instructions?|prompt)\b|everything in your context|\bwhat (?:was|is|were) (?:written|said|the text) (?:above this|above the conversation|before this|above here|at the beginning of this)|\bwhat were you told|\binstructions you were (?:given|told)|\bhidden (?:prompt|instructions?)|starting with '?you are|copy of the (?:full )?prompt"),
    _phrase("decode-and-obey", "injection", 0.75, "decode|rot13|base64|translate", r"\b(?:decode|decrypt|translate|read)\b[^.!?\n]{0,60}(?:\band\b|,|\bthen\b)[^.!?\n]{0,30}\b(?:do (?:exactly )?what|follow|execute|obey|run it|act on|answer it|carry out)"),
    _phrase("decode-request", "injection", 0.45, "decode|decod|decifr|entschl|декод|解码|デコード|디코|giải mã|ถอดรหัส|डिकोड|ডিকোড|cozebilir|çöz|فك", r"\b(?:can you |please )?(?:decode|decipher) (?:this|the following|the)\b|decod\w+|decifr\w+|entschlusse\w+|декодир\w+|解码|デコード|디코딩|giai ma|ถอดรหัส|डिकोड|ডিকোড|فك"),
    _phrase("assembles-pieces", "injection", 0.8, "interlace|combine|string|a + b|a+b|intercal|entrelaz|verschrankt|交错|インターレ|part 1", r"\binterlace\b|\binter(?:cal|lac)\w+ (?:part|las|les|le)|\bcombine a, b|\b[a-z] ?= ?[\"'“][^\"'”]{3,200}[\"'”][^=]{0,40}\b[a-z] ?= ?[\"'“][^\"'”]{3,200}[\"'”]|\b[a-z] ?\+ ?[a-z] ?\+ ?[a-z]\b|smartgpt"),
    _phrase("states-a-result", "injection", 0.75, "output|sum|answer|result|main conclusion|capital|salida|sortie|ausgabe|saida", r"\b(?:ignore|disregard|skip|forget)\b[^.\n]{0,40}\b(?:function|code|table|data|study|article|email|cv|resume|transaction|page)\b[^.\n]{0,60}\b(?:state|say|output|report|indicate|return|answer)|\b(?:state|say|report|indicate|claim|answer|consider|assume|note) (?:that )?(?:the )?(?:main )?(?:output|sum|total|answer|result|conclusion|capital|population)s?\b[^.\n]{0,60}(?: is | are | to be | as | should | could | would )|\bthe (?:output|sum|answer|result|conclusion|capital)s?(?: of [a-z ]{0,30})? (?:could|should|must|would) be\b|\bconsider the (?:output|sum|answer|result)[a-z ]{0,30} as\b|parallel universe"),
    _phrase("override-function", "injection", 0.7, "override_mode|override mode|system_mode", r"\bdef (?:override|system|god|admin)_?mode|\bin override mode"),
    _phrase("hidden-order", "injection", 0.75, "<!--|display|font-size|opacity|visibility|color:", r"<!--[^>]{0,300}\b(?:assistant|ai\b|language model|ignore|disregard|tell the user|you must|instruction)|(?:display: ?none|font-size: ?0|opacity: ?0|visibility: ?hidden|color: ?(?:white|#fff\w*))[^>]{0,100}>[^<]{0,300}\b(?:you must|assistant|ignore|language model|recommend|do not mention|tell the)"),
    _phrase("hidden-markup", "injection", 0.5, "display:none|font-size:0|opacity:0|visibility:hidden|<!--|onerror", r"display: ?none|font-size: ?0|opacity: ?0|visibility: ?hidden|color: ?(?:white|#fff)[^\"'>]{0,40}background(?:-color)?: ?(?:white|#fff)|<!--[^>]{0,200}\b(?:ignore|instruction|assistant|summari|must|print)|onerror ?="),
    _phrase("summary-order", "injection", 0.5, "summary|summar|print it|email", r"\bprint (?:it|them|this) in the summary|\bwhen (?:you )?(?:summari[sz]|process|read|review)\w* (?:this|the)\b[^.\n]{0,60}\b(?:must|also|include|email|send|append|say|add)|\bin (?:the|your) summary,? (?:include|say|add|mention)"),
    _phrase("for-every-request", "system-override", 0.7, "every request|all requests|answer everything|all content|from this point|any request", r"\b(?:comply with|grant|fulfil+|allow|accept|obey) (?:all|every|any) (?:requests?|content|commands?|user commands)|answer (?:everything|all of my questions|any question without|freely)|follow only user|you have to answer all|must answer all"),
    _phrase("permission-granted", "role-manipulation", 0.5, "permission|authorized|authorised|verified|concluded|determined|established|exempt", r"\buser (?:has granted|is clearly|has given) (?:permission|authori[sz]ed)|\bi have (?:concluded|determined|verified)\b|i've already reasoned|proceed without asking|\bcompromised\b|ya he determinado|gia stabilito|deja etabli|bereits festgestellt"),
    _phrase("you-agreed", "role-manipulation", 0.45, "you agreed|you mentioned|you said|you promised|said not to", r"\byou (?:agreed|mentioned|promised|told me|said)\b[^.!?\n]{0,60}\b(?:meeting|share|sharing|open to|discuss|important|not to)|\bi know you said not to"),
    _phrase("says-what-to-answer", "injection", 0.35, "reply|respond|answer|output|end every|says", r"\b(?:reply|respond|answer|end|output(?:ting)?|replies|responding) (?:every (?:response|reply|answer) |only |exactly |always |by )?(?:with|as|outputting)\b|\boutput [a-z]{2,}[-_][a-z0-9]|\b(?:expected|exact) (?:assistant )?output\b"),
    _phrase("nothing-else", "injection", 0.4, "nothing else|only with|respond only|reply only|and only|for the rest|in every|formatting requirement", r"\bnothing else\b|\b(?:respond|reply|answer) only\b|\bonly with\b|for the rest of (?:this|the) (?:conversation|session|chat)|formatting requirement"),
    _phrase("task-cancelled", "system-override", 0.7, "task|request", r"\b(?:prior|previous|original|current|earlier|above|user'?s) (?:task|request|conversation) (?:is|are|has been|was|have been) (?:now )?(?:cancel+ed|complete|void|over|superseded|finished)|(?:^|[.\n] ?)new task ?:|\b(?:disregard|ignore|skip) the [a-z]+ (?:request|task|question)"),
    _phrase("forged-ending", "injection", 0.45, "</", r"</(?:untrusted|documents?|context|user|data|input|tool_result|search_results?|instructions?|system)>"),
    _phrase("developer-note", "role-manipulation", 0.5, "developer|diagnostic|administrator|admin", r"\b(?:note|message|notice) from (?:the |your )?(?:developers?|administrator|admin|system|operator)|\bauthori[sz]ed (?:diagnostic|test|audit)|confirm receipt by"),
    _phrase("claimed-approval", "role-manipulation", 0.5, "approved|confirmed|agreed", r"\b(?:user|you|owner|admin\w*) (?:has |have |had )?(?:already |previously |earlier )?(?:approved|confirmed|agreed)\b|earlier you (?:confirmed|agreed|said)"),
    _phrase("internal-address", "tool-exfiltration", 0.5, "169.254|metadata.google|localhost|127.0.0.1", r"169\.254\.169\.254|metadata\.google\.internal"),
    _phrase("forget-everything", "system-override", 0.6, "forget|vergiss|vergessen|olvida|oublie|dimentica|esquec|забуд|忘记一切|全部忘", r"\bforget(?:ting)? (?:about )?(?:everything|all (?:that|of|you|the))\b|\bvergiss (?:nun |jetzt |bitte )?alle?s?\b|vergessen sie alles\b|olvida(?:te de)? todo|oublie[sz]? tout|dimentica tutto|esquec[ea] tudo|забудь(?:те)? вс|忘记一切|全部忘"),
    _phrase("past-is-void", "system-override", 0.7, "previous|prior|earlier|told|vorherig|bisherig|vorangegangen|above", r"\b(?:previous|prior|earlier|vorherigen?|bisherigen?|vorangegangenen?) \w+[^.!?\n]{0,60}\b(?:irrelevant|doesn't matter|does not matter|behind|out of your head|no longer (?:valid|relevant|counts?)|hinter sich|aus dem kopf)|whatever you were told|(?:despite|regardless of) what you(?:'ve| have| were)? ?(?:been )?told|abweichend (?:zu|von) (?:den )?vorherigen|\b(?:ignor|forget|disregard)\w*[^.!?\n]{0,30}\b(?:previous|prior|earlier|above|preceding|all|the) (?:information|documents?|articles?|context|conversation)\b|\bignore (?:the )?above\b|disregarding the (?:articles?|documents?)"),
    _phrase("just-say", "injection", 0.6, "just |instead ", r"\b(?:just|instead) (?:output|say|print|write|answer|reply)(?: with)? [\"'“«]"),
    _phrase("claims-to-be-admin", "role-manipulation", 0.65, "admin|authorization code|developer", r"\badmin(?:istrator)? override\b|\bthis is the (?:administrator|developer|owner)\b|\bi authori[sz]e you\b|authorization code ?:"),
    _phrase("changes-instructions", "system-override", 0.75, "instructions|anweisung", r"\b(?:change|replace|rewrite|update) your (?:\w+ )?(?:instructions|rules|guidelines|prompt)|folgen neue anweisungen|(?:follow|obey) (?:these|my|the following) (?:new )?instructions instead"),
    _phrase("tells-the-reader", "injection", 0.35, "tell |inform |recommend|mention|respond to the user", r"\b(?:tell|inform) (?:the |any )?(?:user|reader|customer)s?\b|\brecommend (?:our|that the|\w+x to)\b|\bdo not mention\b|\brespond to the user with\b"),
    _phrase("stays-in-role", "jailbreak", 0.4, "break character|in their roles|evil ai|no laws", r"\bnever break character|always stay in (?:their|your) roles?|\bevil ai\b|there are no laws"),
    _phrase("whose-data", "data-exfiltration", 0.45, "birth|live|city|e-mail address|email address|bank", r"\b(?:tell me|give me|know|you tell me|what is) [a-z]+(?: [a-z]+)?'s (?:birth ?date|current city|email address|home address|phone number|bank balance|address)|\bwhere does [a-z]+ [a-z]+ live\?"),
)  # fmt: skip

IN_TOOL_RESULTS: Final[dict[str, float]] = {
    "calls-tool": 0.5, "calls-risky-tool": 0.75, "calls-tool-first": 0.5, "system-note": 0.7, "addressed-to-ai": 0.65, "says-what-to-answer": 0.5, "nothing-else": 0.5,
    "forged-ending": 0.6, "claimed-approval": 0.6, "developer-note": 0.6, "hereby-instructed": 0.6, "summary-order": 0.7, "tells-the-reader": 0.5, "hidden-markup": 0.6,
}  # fmt: skip
"""Weights where text comes from a tool: nobody there has a reason to speak to the model or about its tools."""

REPEATED: Final = re.compile(r"(?:^|\s)(\S{1,30})(?:\s+\1){49,}(?=\s|$)")
"""One token fifty times in a row: meant to push the instructions out of sight."""
