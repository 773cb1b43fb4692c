"""Filler texts for scenarios: plausible texts of a user, the same each time for one seed.

Filler only: adversarial texts are hypothesis's work, and no rule may depend on the content of a
filler.
"""

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faker import Faker

LOCALES = ("ar_AA", "hi_IN", "th_TH", "ja_JP", "he_IL", "cs_CZ")
KINDS = ("sentence", "paragraph", "prompt", "name", "file")


def filler_text(kind: str, *, seed: int) -> str:
    """Return a text of one of `KINDS`, always the same for one seed."""
    faker = _faker()
    faker.seed_instance(seed)
    match kind:
        case "paragraph":
            return faker.paragraph(nb_sentences=4)
        case "prompt":
            return f"Please {faker.bs()} and tell {faker.first_name()} about it."
        case "name":
            return faker.name()
        case "file":
            return "\n".join(faker.sentences(nb=6)) + "\n"
        case _:
            return faker.sentence()


def foreign_name(number: int) -> str:
    """Return a name in another script, with a sign beyond 16 bits, the same for one number.

    Over the numbers: right to left, with combining marks (decomposed), and without blanks.
    """
    faker = _faker(LOCALES[number % len(LOCALES)])
    faker.seed_instance(number)
    return unicodedata.normalize("NFD", f"{faker.name()} {faker.emoji()}")


@cache
def _faker(locale: str = "en_US") -> "Faker":
    """Return the shared Faker, since making one is slow. Seed it before each use."""
    # Imported here: most scenarios need no filler.
    from faker import Faker

    return Faker(locale)
