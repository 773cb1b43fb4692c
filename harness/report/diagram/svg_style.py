"""Colours and type of the SVG of a diagram, for light and dark."""

from typing import Final

# Of a monospaced font: the width of a character by its size.
CHARACTER_WIDTH: Final = 0.602
FONT_PIXELS: Final = 12
LABEL_FONT_PIXELS: Final = 11

_LIGHT: Final = (
    "--page:#ffffff;--text:#1c2430;--muted:#5b6675;--line:#c9d1dc;--box:#f2f5f9;--edge:#b4bfcd;"
    "--request:#1d4ed8;--response:#1f6f43;--notification:#4b5a6e;--error:#b45309;"
    "--wrong:#c01c1c;--wrong-box:#fdecec;--proof:#c95f5f;--quiet:#8a5a00;--quiet-box:#fff6e0"
)
_DARK: Final = (
    "--page:#11161d;--text:#e3e9f1;--muted:#97a3b3;--line:#33404f;--box:#1b232d;--edge:#465466;"
    "--request:#7aa7ff;--response:#6fce9a;--notification:#a9b6c7;--error:#f0a94b;"
    "--wrong:#ff7b7b;--wrong-box:#3a1a1d;--proof:#a85a5f;--quiet:#e6bd63;--quiet-box:#2e2712"
)
STYLE: Final = f"""
svg{{{_LIGHT};font:{FONT_PIXELS}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",\
"Liberation Mono",monospace}}
@media (prefers-color-scheme:dark){{svg{{{_DARK}}}}}
text{{fill:var(--text);white-space:pre}}
.page{{fill:var(--page)}}
.over{{paint-order:stroke;stroke:var(--page);stroke-width:5px;stroke-linejoin:round}}
.title{{font-size:15px;font-weight:600}}
.muted,.time{{fill:var(--muted);font-size:{LABEL_FONT_PIXELS}px}}
.life{{stroke:var(--line)}}
.head{{fill:var(--box);stroke:var(--edge)}}
.name{{font-weight:600}}
.busy{{fill:var(--box);stroke:var(--edge)}}
.arrow{{fill:none;stroke-width:1.4}}
.request{{stroke:var(--request)}} .request.tip{{fill:var(--request)}}
.response{{stroke:var(--response);stroke-dasharray:6 4}}
.notification,.folded{{stroke:var(--notification)}}
.folded{{stroke-width:3.2;stroke-dasharray:2 3}}
.error{{stroke:var(--error);stroke-dasharray:6 4}}
.malformed{{stroke:var(--error);stroke-dasharray:2 3}}
.missing{{stroke:var(--wrong);stroke-dasharray:5 4;stroke-width:1.8}}
.owed{{stroke:var(--muted);stroke-dasharray:5 4}}
.tip,.cross{{stroke-dasharray:none}}
.band{{fill:var(--wrong-box)}} .edge{{fill:var(--wrong)}} .dot{{fill:var(--proof)}}
.bad{{fill:var(--wrong);font-weight:600}} .why{{fill:var(--text);font-size:{LABEL_FONT_PIXELS}px}}
.band.mild{{fill:var(--quiet-box)}} .edge.mild,.bad.mild{{fill:var(--quiet)}}
.note{{fill:var(--box);stroke:var(--edge)}}
.silence{{fill:var(--quiet-box)}} .still{{fill:var(--quiet);font-size:{LABEL_FONT_PIXELS}px}}
.gap{{stroke:var(--quiet);stroke-dasharray:1 5;stroke-width:2}}
.rule{{stroke:var(--line);stroke-dasharray:1 3}}
"""
