"""The report in a browser: nothing complains, nothing leaves, everything fits, can be read, and equals the JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sweep_browser import Browser, chromium

import pulse.report
from pulse.report import schedule
from pulse.report.html import render
from pulse.report.plots import NARROW, PLOTS, WIDE
from pulse.report.svg import standalone

pytest.importorskip("onnxruntime", reason="the engine that is swept here")
ENC = Path(__file__).resolve().parent.parent / "models" / "enc.onnx"
SIZES, THEMES = (390, 1280), ("light", "dark")
ODD = '/df_conv1/<df> & "conv" 1.1/Conv'

# Texts that can be seen, with their colours and those of what lies beneath them.
CONTRAST = """(() => {
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const shapes = new Set(["rect", "circle"]);
  const ground = (element) => {
    element.scrollIntoView({ block: "center", inline: "center" });
    const now = element.getBoundingClientRect();
    const [x, y] = [now.left + now.width / 2, now.top + now.height / 2];
    const stack = document.elementsFromPoint(x, y);
    for (const below of stack.slice(stack.indexOf(element) + 1)) {
      const style = getComputedStyle(below);
      const colour = shapes.has(below.localName) ? style.fill : style.backgroundColor;
      if (colour !== "none" && parse(colour)[3] === 1 && !(below instanceof SVGElement && !shapes.has(below.localName)))
        return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || ["SCRIPT", "STYLE", "title"].includes(element.nodeName) || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(parse(ink)), light(parse(ground(element)))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([text, Math.round(contrast * 100) / 100]);
  }
  return found;
})()"""

# Every figure in text, with its place in the JSON.
CELLS = """[...document.querySelectorAll("[data-json]")]
  .map((e) => [e.dataset.json, Number(e.dataset.scale), e.textContent])"""

# Marks that can be seen: values read off the axes they are drawn on, and places in the JSON of what they stand for.
MARKS = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.getClientRects().length) continue;
    const read = (axis, at) => {
      const group = svg.querySelector(`[data-axis=${axis}]`);
      const ticks = [...group.querySelectorAll("[data-value]")]
        .map((e) => [Number(e.dataset.place), Number(e.dataset.value)]);
      const [[p, u], [q, v]] = [ticks[0], ticks[ticks.length - 1]];
      return u + (at - p) / (q - p) * (v - u);
    };
    for (const mark of svg.querySelectorAll("[data-y]")) {
      const [x, y] = mark.dataset.at.split(" ").map(Number);
      const box = (mark.localName === "g" ? mark.querySelector("rect:last-of-type") : mark).getBBox();
      found.push([svg.dataset.plot, mark.dataset.x || null, mark.dataset.x ? read("x", box.x + box.width / 2) : null,
        mark.dataset.y, Number(mark.dataset.yScale), read("y", box.y + box.height / 2), Math.hypot(
          box.x + box.width / 2 - x, box.y + box.height / 2 - y)]);
    }
  }
  return found;
})()"""

BARS = """[...document.querySelectorAll("svg [data-bar]")].filter((e) => e.getClientRects().length)
  .map((e) => [e.dataset.bar, e.getBBox().height])"""

CELLS_OF_KERNELS = """[...document.querySelectorAll("svg [data-kernel]")].filter((e) => e.getClientRects().length)
  .map((e) => [e.dataset.product, Number(e.dataset.pulse), e.dataset.kernel])"""

# Text of a plot outside of the plot, or on top of another text.
MISPLACED = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.getClientRects().length) continue;
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
    for (const [text, box] of texts)
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
          || box.bottom > frame.bottom + 1)
        found.push([svg.dataset.plot, text, "outside"]);
    const free = [...svg.querySelectorAll("text")].filter((e) => !e.closest("[data-y]"))
      .map((e) => [e.textContent, e.getBoundingClientRect()]);
    free.forEach(([text, a], i) => free.slice(i + 1).forEach(([other, b]) => {
      if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3)
        found.push([svg.dataset.plot, text, other]);
    }));
  }
  return found;
})()"""


def named_kernels(rows: list[dict[str, Any]], change: str) -> None:
    """What an engine that tells its kernels would add."""
    for row in rows:
        row["kernels"] = {ODD: f"v4_mmm_f32_64x{row['pulse']}", "gru.R": "v4_mmm_f32_64x1", "lsnr_fc": change}
        row["products_us"] = {ODD: 0.45 * row["us_per_pulse"]["median"], "gru.R": 0.01 * row["us_per_pulse"]["median"]}


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    """A real sweep on two engines, with kernels added."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "QUICK_ROUNDS", 2)
        patch.setattr(schedule, "QUICK_PACED_S", 0.1)
        patch.setattr(schedule, "QUICK_HOT_S", 0.05)
        found = pulse.report.sweep(
            ENC, [1, 2, 3, 8, 24], engines=["onnxruntime"], frame_ms=4, quick=True, budget_ms=20, cpu_budget=90
        )
    named_kernels(found["widths"], "dot")
    found["compared"] = copy.deepcopy(found["widths"])
    for row in found["compared"]:
        row["engine"], row["cpu_load"] = "another", 1.3 * row["cpu_load"]
    found["engines"].append("another")
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


@pytest.fixture(scope="module")
def page(figures: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "sweep.html"
    path.write_text(render(figures), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium here: install the package chromium")
    with Browser(path) as found:
        yield found


def value(figures: Any, pointer: str) -> Any:
    """The value at a JSON pointer, read independently of the report's own code."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        figures = figures[int(key) if isinstance(figures, list) else key]
    return figures


def test_the_file_needs_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for word in ("http://", "https://", "src=", "@import", "url("):
        assert word not in text.replace("http://www.w3.org/2000/svg", ""), word
    assert len(text) < 400_000


def test_plots_stand_alone_as_files(figures: dict[str, Any]) -> None:
    from xml.etree import ElementTree

    for name, draw in PLOTS.items():
        for width in (WIDE, NARROW):
            canvas = draw(figures, width)
            assert canvas is not None
            root = ElementTree.fromstring(standalone(canvas, name, "enc.onnx & its machine"))
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert not [e for e in root.iter() if "var(" in str(e.attrib)]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
def test_it_fits_and_can_be_read(browser: Browser, page: Path, width: int, theme: str) -> None:
    browser.open(page, width, theme)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run(MISPLACED) == []
    contrasts = browser.run(CONTRAST)
    assert len(contrasts) > 150
    assert [(text, found) for text, found in contrasts if found < 4.5] == []
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(246, 245, 242)", "dark": "rgb(22, 22, 21)"}[theme]


@pytest.mark.parametrize("width", SIZES)
def test_every_figure_equals_the_json(browser: Browser, page: Path, figures: dict[str, Any], width: int) -> None:
    browser.open(page, width)
    assert json.loads(browser.run("document.getElementById('figures').textContent")) == figures
    cells = browser.run(CELLS)
    assert len(cells) > 100
    for pointer, scale, text in cells:
        wanted = value(figures, pointer)
        if wanted is None:
            assert text == "–"
            continue
        digits = text.replace(",", "")
        places = len(digits.partition(".")[2])
        assert abs(float(digits) - wanted * scale) <= 0.5 * 10**-places + 1e-9, (pointer, text)
    marks = browser.run(MARKS)
    assert {plot for plot, *_ in marks} == {"latency", "families"}
    for _, x_pointer, x, y_pointer, scale, y, off in marks:
        assert off < 0.2
        assert y == pytest.approx(
            value(figures, y_pointer) * scale, rel=0.02, abs=0.02 * peak(figures, y_pointer, scale)
        )
        if x_pointer:
            assert x == pytest.approx(value(figures, x_pointer), abs=0.01 * figures["widths"][-1]["delay_ms"]["total"])
    for pointer, tall in browser.run(BARS):
        counts = value(figures, pointer.rpartition("/")[0])
        assert tall == pytest.approx(max(36 * value(figures, pointer) / max(counts), 1.5), abs=0.1)
    shown = {(product, width_): kernel for product, width_, kernel in browser.run(CELLS_OF_KERNELS)}
    assert shown == {(p, row["pulse"]): k for row in figures["widths"] for p, k in row["kernels"].items()}


def peak(figures: dict[str, Any], pointer: str, scale: float) -> float:
    """The largest of the values that share an axis with this one."""
    _, _, _, key, *rest = pointer.split("/")
    rows = figures["widths"] + figures["compared"]
    values = [row[key] for row in rows]
    return float(max(max(v.values()) if rest else v for v in values) * scale)


@pytest.mark.parametrize("width", SIZES)
def test_axes_are_labelled_with_units(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    seen = "[...document.querySelectorAll('svg')].filter((e) => e.getClientRects().length)"
    texts = dict(browser.run(f"{seen}.map((e) => [e.dataset.plot, e.textContent])"))
    assert "CPU load, % of one core" in texts["latency"]
    assert "total latency, ms" in texts["latency"]
    assert "budget 20 ms" in texts["latency"]
    assert "recommended" in texts["latency"]
    assert "time per frame, µs" in texts["families"]
    for plot in ("families", "kernels"):
        assert "pulse width, frames" in texts[plot]
    assert "time per pulse (logarithmic)" in texts["distribution"]
    assert "µs" in texts["distribution"]


def test_buttons_copy_save_and_change_the_theme(browser: Browser, page: Path, figures: dict[str, Any]) -> None:
    browser.open(page, 1280, "light")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.run("document.querySelector('[data-copy=table-hot]').click()")
    lines = browser.run("window.copied").splitlines()
    assert lines[0].split("\t")[:3] == ["engine", "pulse frames", "median µs"]
    assert lines[1].split("\t")[1] == "1"
    assert len(lines) == 1 + 2 * len(figures["widths"])
    browser.run("document.getElementById('copy-json').click()")
    assert json.loads(browser.run("window.copied")) == figures
    browser.run("document.getElementById('theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 21)"
    saved = browser.run(
        """new Promise((done) => {
          HTMLAnchorElement.prototype.click = function () {
            fetch(this.href).then((r) => r.arrayBuffer())
              .then((b) => done([this.download, b.byteLength, [...new Uint8Array(b, 0, 4)]]));
          };
          document.querySelector("#plot-latency [data-save=png]").click();
        })"""
    )
    assert saved[0] == "latency.png"
    assert saved[1] > 5000
    assert saved[2] == [0x89, 0x50, 0x4E, 0x47]


def scaled(figures: dict[str, Any], factor: float, frame_ms: float) -> dict[str, Any]:
    """The same sweep of a model that takes `factor` times as long, with frames of another duration."""
    found = copy.deepcopy(figures)
    found["frame_ms"], found["budget_ms"] = frame_ms, 5 * frame_ms
    for row in found["widths"] + found["compared"]:
        for key in ("us_per_pulse", "paced_us_per_pulse", "families_us_per_frame", "products_us"):
            row[key] = {name: us * factor for name, us in row[key].items()}
        row["us_per_frame"] *= factor
        row["distribution"]["edges_us"] = [edge * factor for edge in row["distribution"]["edges_us"]]
        row["deadline_us"] = 1000 * frame_ms * row["pulse"]
        compute = row["paced_us_per_pulse"]["median"] / 1000
        buffering = (row["pulse"] - 1) * frame_ms
        row["cpu_load"] = 1000 * compute / row["deadline_us"]
        row["keeps_up"] = row["cpu_load"] < 1
        total = buffering + compute if row["keeps_up"] else None
        row["delay_ms"] = {"model": 0.0, "buffering": buffering, "compute": compute, "total": total}
    return found


@pytest.mark.parametrize("factor", [0.01, 0.3, 1.7, 11, 90])
def test_fast_and_slow_models_fit_as_well(
    browser: Browser, figures: dict[str, Any], tmp_path: Path, factor: float
) -> None:
    for frame_ms in (0.0625, 10.0, 64.0):
        path = tmp_path / "scaled.html"
        path.write_text(render(scaled(figures, factor, frame_ms)), encoding="utf-8")
        for width in SIZES:
            browser.open(path, width)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run(MISPLACED) == []


def test_print_is_light_and_without_buttons(browser: Browser, page: Path) -> None:
    browser.open(page, 740, "dark", "print")
    assert browser.run("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#1f1f1d"
    assert browser.run("[...document.querySelectorAll('button')].some((b) => b.getClientRects().length)") is False
    assert browser.run("document.documentElement.scrollWidth") <= 740
    assert len(browser.call("Page.printToPDF", printBackground=True)["data"]) > 20_000


def test_nothing_complained_and_nothing_left(browser: Browser, page: Path) -> None:
    """Last: what the browser saw over all the tests before."""
    browser.open(page, 390)
    assert browser.complaints == []
    outside = [url for url in browser.requests if not url.startswith(("file://", "data:", "blob:"))]
    assert outside == []
    assert page.as_uri() in browser.requests
    assert all(url.endswith(".html") for url in browser.requests if url.startswith("file://"))


def test_without_anything_optional_it_still_reads(browser: Browser, figures: dict[str, Any], tmp_path: Path) -> None:
    """No duration of a frame, no families, no kernels, one width, no recommendation to be had."""
    bare = copy.deepcopy(figures)
    row = bare["widths"][0]
    bare |= {"frame_ms": None, "budget_ms": None, "cpu_budget": None, "compared": [], "engines": ["reference"]}
    bare |= {"widths": [row], "engine": "reference", "interrupted": True}
    bare["recommended"] = {"pulse": None, "why": "none"}
    row |= {"engine": "reference", "families": None, "families_us_per_frame": None, "kernels": {}, "cpu_load": None}
    row["us_per_pulse"]["median"] = row["paced_us_per_pulse"]["median"]  # the distribution is of these times
    row |= {"paced_us_per_pulse": None, "deadline_us": None, "keeps_up": None, "missed": None, "on_frontier": False}
    row["delay_ms"] = dict.fromkeys(row["delay_ms"])
    path = tmp_path / "bare.html"
    path.write_text(render(bare), encoding="utf-8")
    for width in SIZES:
        browser.open(path, width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run(MISPLACED) == []
    assert browser.complaints == []
    assert "interrupted" in browser.run("document.body.innerText")
