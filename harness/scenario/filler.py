"""Filler texts for scenarios: what a person might type, the same each time for one seed.

Filler only: nothing adversarial comes from here (that is hypothesis's work), and no rule may
depend on what the text says.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faker import Faker

KINDS = ("sentence", "paragraph", "prompt", "name", "file")


def filler(kind: str, *, seed: int) -> str:
    """A text of one of `KINDS`."""
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


@cache
def _faker() -> "Faker":
    """Making one takes longer than all the rest of loading a scenario; it is seeded each time."""
    # Most scenarios do without.
    from faker import Faker

    return Faker("en_US")
