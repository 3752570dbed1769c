"""The report: one file that needs nothing else, for a phone, a screen or paper."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from pulse.report import tables
from pulse.report.plots import NARROW, PLOTS, WIDE
from pulse.report.text import number
from pulse.report.theme import DARK, FONT, LIGHT, variables

HERE = Path(__file__).parent
CAPTIONS = {
    "latency": (
        "What each width costs",
        "Every mark is a pulse width in frames, the filled one is recommended. The line joins the widths that no other "
        "beats in both.",
        "Every mark is a pulse width in frames. Without the duration of a frame neither latency nor load is known: "
        "give --frame-ms, or --rate and --hop.",
    ),
    "families": (
        "Where the time goes",
        "Back to back. What works frame by frame is flat; what reads its weights once per pulse falls as pulses widen. "
        "“call” is what lies around the operators.",
        "",
    ),
    "kernels": (
        "Which kernel runs which product",
        "The stronger a cell's colour, the more of the pulse is spent in it. A dot marks a kernel that differs from "
        "the one at the width before.",
        "",
    ),
    "distribution": (
        "How long pulses take",
        "In real time. The line to the right of each is its deadline: the moment when the next pulse has arrived.",
        "Back to back. Without the duration of a frame there is no deadline.",
    ),
}
NO_KERNELS = "This engine does not tell which kernels it runs; the native engine does."
NO_FAMILIES = "This engine does not tell where the time goes, so there is only the whole."
TERMS = (
    ("pulse", "the frames that one call consumes"),
    ("paced", "pulses arrive in real time and the program sleeps in between, as it does live: caches are cold by then"),
    ("back to back", "one pulse after another without a pause: the machine at its best"),
    ("CPU load", "median paced time of a pulse over the time that its frames last, of one core"),
    ("total latency", "delay of the model + (P − 1) frames of buffering + median paced time of a pulse"),
    ("p99", "99 of 100 pulses take no longer; of fewer than 100 pulses it is the longest"),
)


def render(figures: dict[str, Any]) -> str:
    """The page for the figures of a sweep, as `pulse sweep --json` has them."""
    found = json.loads(json.dumps(figures))  # what the page shows is what its JSON says
    body = "".join(
        (_head(found), _verdict(found), _plots(found), _tables(found), _machine(found), _terms(), _data(found))
    )
    style = (HERE / "report.css").read_text(encoding="utf-8").replace("FONT", FONT)
    style = f":root{{{variables(LIGHT)}}}{_dark()}{style}"
    script = (HERE / "report.js").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(found['model'])}: sweep over pulse widths</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _dark() -> str:
    dark = variables(DARK)
    return (
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )


def _head(found: dict[str, Any]) -> str:
    with_isa = f" ({found['isa']})" if found["isa"] else ""
    frame = "" if found["frame_ms"] is None else f" · frames of {number(found['frame_ms'])} ms"
    weights = "" if found["weights"] == "f32" else f" · weights as {found['weights']}"
    about = f"{', '.join(found['engines'])}{weights}{frame} · {found['cpu']}{with_isa} · {found['machine']['date']}"
    return (
        f"<header><div><p class=eyebrow>pulse sweep</p><h1>{escape(found['model'])}</h1>"
        f"<p class=soft>{escape(about)}</p></div>"
        '<button type=button id=theme aria-label="Change colours">Dark</button></header>'
    )


def _verdict(found: dict[str, Any]) -> str:
    advice = found["recommended"]
    noise = found["noise"]
    parts = ['<section class="card verdict">']
    if advice["pulse"] is None:
        parts.append(f"<p class=eyebrow>recommended</p><p class=answer>none</p><p>{escape(advice['why'])}.</p>")
    else:
        index = next(i for i, row in enumerate(found["widths"]) if row["pulse"] == advice["pulse"])
        parts.append(
            "<p class=eyebrow>recommended pulse width</p>"
            f"<p class=answer>{tables.figure(found, '/recommended/pulse')} <small>frames</small></p>"
            f"<p>{escape(advice['why'])}.</p><dl class=stats>"
        )
        for path, scale, unit, label in (
            ("delay_ms/total", 1, "ms", "total latency"),
            ("cpu_load", 100, "%", "CPU load of one core"),
            ("paced_us_per_pulse/median", 1, "µs", "per pulse, paced"),
            ("us_per_frame", 1, "µs", "per frame, back to back"),
        ):
            shown = tables.figure(found, f"/widths/{index}/{path}", scale)
            parts.append(f"<div><dt>{label}</dt><dd>{shown} <small>{unit}</small></dd></div>")
        parts.append("</dl>")
    if found["noisy"]:
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in noise["reasons"])
        parts.append(f"<details class=noisy open><summary>Noisy machine: measure again when it is quiet</summary>"
                     f"<ul>{reasons}</ul></details>")  # fmt: skip
    else:
        parts.append("<p class=quiet>The machine was quiet enough to believe these figures.</p>")
    if found["interrupted"]:
        parts.append("<p class=note>The sweep was interrupted: these are the figures measured until then.</p>")
    for skipped in found["skipped"]:
        parts.append(
            f"<p class=note>P = {skipped['pulse']} is left out ({skipped['code']}): {escape(skipped['why'])}.</p>"
        )
    parts.append("</section>")
    return "".join(parts)


def _plots(found: dict[str, Any]) -> str:
    parts = []
    for name, draw in PLOTS.items():
        title, text, without = CAPTIONS[name]
        if without and found["frame_ms"] is None:
            text = without
        wide, narrow = draw(found, WIDE), draw(found, NARROW)
        parts.append(f'<figure class=card id="plot-{name}"><figcaption><h2>{title}</h2>')
        if wide is None or narrow is None:
            parts.append(f"<p>{NO_KERNELS}</p></figcaption></figure>")
            continue
        if name == "families" and not found["widths"][0]["families"]:
            text = NO_FAMILIES
        parts.append(
            f"<p>{text}</p></figcaption><div class=wide>{wide.finish(name)}</div>"
            f"<div class=narrow>{narrow.finish(name)}</div>"
            f'<div class=save><button type=button data-save="svg">SVG</button>'
            f'<button type=button data-save="png">PNG</button></div></figure>'
        )
    return "".join(parts)


def _tables(found: dict[str, Any]) -> str:
    parts = [
        tables.rows_table(found, "latency", "Latency and load", tables.LATENCY),
        tables.rows_table(found, "paced", "Time per pulse, paced", tables.PACED),
        tables.rows_table(found, "hot", "Time per pulse, back to back", tables.HOT),
        tables.families_table(found),
        tables.kernels_table(found),
        tables.rows_table(found, "sizes", "Memory, and pulses timed", tables.SIZES),
    ]
    return f"<div class=tables>{''.join(part for part in parts if part)}</div>"


def _machine(found: dict[str, Any]) -> str:
    machine = found["machine"]
    core = "" if machine["core"] is None else f", pinned to core {machine['core']}"
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    rows = (
        ("CPU", found["cpu"]),
        ("instruction set", found["isa"] or "native kernels not built"),
        ("cores", f"{machine['cores']}{core}"),
        ("system", machine["system"]),
        ("versions", versions),
        ("signal", found["signal"]),
        ("other programs", f"{100 * found['noise']['preempted']:.1f} % of the computing time"),
        ("repeated", f"{found['noise']['repeated']} visits, since constant work was slow around them"),
        ("constant work", f"time known within {100 * found['noise']['reference_spread']:.1f} %"),
        ("took", f"{found['seconds']:.0f} s{', quick' if found['quick'] else ''}"),
    )
    listed = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(str(value))}</dd></div>" for key, value in rows)
    return f"<section class=card><h3>Machine</h3><dl class=facts>{listed}</dl></section>"


def _terms() -> str:
    listed = "".join(f"<div><dt>{escape(word)}</dt><dd>{escape(meaning)}</dd></div>" for word, meaning in TERMS)
    return f"<section class=card><h3>Words</h3><dl class=facts>{listed}</dl></section>"


def _data(found: dict[str, Any]) -> str:
    text = json.dumps(found, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
    return (
        "<footer><button type=button id=copy-json>Copy all figures as JSON</button></footer>\n"
        f'<script type="application/json" id="figures">{text}</script>'
    )
