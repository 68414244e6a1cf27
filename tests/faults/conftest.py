from tests.living_database import living_database

__all__ = ["living_database"]
