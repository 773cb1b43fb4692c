"""A state machine as SVG, in the type and colours of the diagrams of conversations.

The states stand below each other in the order in which they are reached. An arrow to the next state
goes straight down; any other leaves to the right (downwards) or to the left (upwards, or back to
its own state), with its events at the state that it leaves.
"""

from collections.abc import Iterator
from html import escape

from harness.protocol.spec.machines import Machine
from harness.report.diagram.svg_style import CHARACTER_WIDTH, FONT_PIXELS, STYLE

_CHARACTER = CHARACTER_WIDTH * FONT_PIXELS
# Pixels: between arrows at a side of a state, between states, between lanes of arrows.
_PORT, _GAP, _LANE, _MARGIN = 26, 46, 16, 20
Arrow = tuple[str, str]


class _Drawing:
    """Places of states and arrows; `asides` are the arrows on the left (-1) and right (1)."""

    def __init__(self, machine: Machine) -> None:
        self.order = _states_as_reached(machine)
        self.labels: dict[Arrow, str] = {}
        for (state, event), after in machine.transitions.items():
            known = self.labels.get((state, after))
            self.labels[state, after] = f"{known}, {event}" if known else event
        steps = {one: self.order.index(one[1]) - self.order.index(one[0]) for one in self.labels}
        self.asides = {
            -1: [one for one, step in steps.items() if step < 1],
            1: [one for one, step in steps.items() if step > 1],
        }
        self.spaces = {
            side: max((_width(self.labels[one]) + 16 for one in arrows), default=0)
            + _LANE * len(arrows)
            for side, arrows in self.asides.items()
        }
        self.heights = {
            state: _PORT * max(2, *(len(self._ports(state, side)) for side in self.asides))
            for state in self.order
        }
        self.tops: dict[str, float] = {}
        self.bottom: float = _MARGIN + _GAP
        for state in self.order:
            self.tops[state] = self.bottom
            self.bottom += self.heights[state] + _GAP
        self.half = (max(map(_width, self.order)) + 32) / 2
        self.middle = _MARGIN + self.spaces[-1] + self.half
        down = max(_width(self.labels[one]) + 12 for one, step in steps.items() if step == 1)
        self.width = self.middle + max(self.half + self.spaces[1], down) + _MARGIN

    def _ports(self, state: str, side: int) -> list[Arrow]:
        return [one for one in self.asides[side] if state in one]

    def _port(self, state: str, side: int, arrow: Arrow) -> float:
        return self.tops[state] + (self._ports(state, side).index(arrow) + 0.7) * _PORT

    def arrows(self) -> Iterator[str]:
        """Yield the elements of all arrows."""
        yield _line((self.middle, _MARGIN + 8), (self.middle, self.tops[self.order[0]]))
        for (state, after), label in self.labels.items():
            side = next((one for one in (-1, 1) if (state, after) in self.asides[one]), 0)
            if not side:
                y = self.tops[state] + self.heights[state]
                yield _line((self.middle, y), (self.middle, self.tops[after]))
                yield _text(self.middle + 10, y + _GAP / 2 + 4, label)
                continue
            lane = len(self.asides[side]) - self.asides[side].index((state, after)) - 1
            edge = self.middle + side * self.half
            x = edge + side * (self.spaces[side] - _LANE * lane)
            y, end = (self._port(one, side, (state, after)) for one in (state, after))
            end += 9 if state == after else 0
            yield _line((edge, y), (x, y), (x, end), (edge, end))
            yield _text(edge + side * 10, y - 4, label, "start" if side > 0 else "end")

    def states(self) -> Iterator[str]:
        """Yield the elements of all states."""
        for state, y in self.tops.items():
            yield (
                f'<rect class="head" rx="6" x="{self.middle - self.half:.1f}" y="{y:.1f}" '
                f'width="{2 * self.half:.1f}" height="{self.heights[state]:.1f}"/>'
            )
            yield _text(self.middle, y + self.heights[state] / 2 + 4, state, "middle", "name")


def machine_svg(name: str, machine: Machine) -> str:
    """Return the drawing of a machine; `name` is its title."""
    drawing = _Drawing(machine)
    words = escape(f"State machine {name}: {', '.join(drawing.order)}")
    size = f'width="{drawing.width:.0f}" height="{drawing.bottom:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{words}">\n'
        f"<title>{words}</title><style>{STYLE}</style>\n"
        '<rect class="page" width="100%" height="100%"/>\n'
        + "\n".join([*drawing.arrows(), *drawing.states(), "</svg>\n"])
    )


def _states_as_reached(machine: Machine) -> list[str]:
    order = [machine.initial]
    for state in order:
        following = (to for (begin, _), to in machine.transitions.items() if begin == state)
        order += [to for to in dict.fromkeys(following) if to not in order]
    return order


def _width(text: str) -> float:
    return len(text) * _CHARACTER


def _line(*points: tuple[float, float]) -> str:
    (x, y), (end_x, end_y) = points[-2:]
    across, down = (end_x > x) - (end_x < x), (end_y > y) - (end_y < y)
    back_x, back_y = end_x - 8 * across, end_y - 8 * down
    tip = (
        f"{end_x:.1f},{end_y:.1f} {back_x + 4 * down:.1f},{back_y + 4 * across:.1f} "
        f"{back_x - 4 * down:.1f},{back_y - 4 * across:.1f}"
    )
    way = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    return (
        f'<polyline class="arrow request" points="{way}"/>'
        f'<polygon class="request tip" points="{tip}"/>'
    )


def _text(x: float, y: float, words: str, anchor: str = "start", kind: str = "over") -> str:
    place = f'class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"
