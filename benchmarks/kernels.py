"""The best kernel of every product of some published audio models, as a share of what this core could do.

    python benchmarks/kernels.py [--isa v3] [--widths 1,4] [--shapes 64x384x1,96x64x32] [--cold] [--json]

The products are those of DeepFilterNet2 (encoder, both decoders), DeepFilterNet3 (encoder), NSNet2 and FireRedVAD in
streaming form. Short products (limit under 300 ns) are shown but not counted, nor are those with fewer than 4 rows.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from typing import Any

from pulse.engine.isa import cpu_name, current
from pulse.engine.pick import Layout, pick
from pulse.engine.timing import Timing, time_product

COUNTED_NS = 300.0
COUNTED_ROWS = 4
BAR = 0.9


@dataclass(frozen=True)
class Product:
    """A product of a model at pulse width 1.

    `columns` grow with the width, unless the product runs once per frame: a recurrence, or a convolution over padded
    bands, whose columns are contiguous within a frame only.
    """

    of: str
    m: int
    k: int
    columns: int = 1
    layout: Layout = "frame"
    per_frame: bool = False

    def at(self, width: int) -> int:
        """n at a pulse width."""
        return self.columns if self.per_frame else self.columns * width


PRODUCTS = (
    Product("dfn erb_conv0", 64, 9, 32, "channel", per_frame=True),
    Product("dfn erb_conv1, convt2", 64, 64, 16, "channel"),
    Product("dfn erb_conv2, erb_conv3, convt3", 64, 64, 8, "channel"),
    Product("dfn convt1", 64, 64, 32, "channel"),
    Product("dfn df_conv0, composed", 64, 18, 96, "channel", per_frame=True),
    Product("dfn df_conv1", 64, 64, 48, "channel"),
    Product("dfn2 df_convp, a group", 5, 160, 96, "channel"),
    Product("dfn2 df_convp, pointwise", 10, 10, 96, "channel"),
    Product("dfn conv0_out", 1, 192, 32, "channel", per_frame=True),
    Product("dfn2 fc_emb, a group", 64, 384),
    Product("dfn2 emb_gru linear_in, a group", 32, 128),
    Product("dfn2 decoders' linear_in, a group", 32, 32),
    Product("dfn2 erb_dec linear_out, a group", 64, 32),
    Product("dfn2 df_out, a group", 120, 32),
    Product("dfn3 fc_emb, a group", 16, 96),
    Product("dfn3 linear_in, a group", 16, 32),
    Product("dfn3 linear_out, a group", 32, 16),
    Product("dfn GRU, input", 768, 256),
    Product("dfn GRU, recurrent", 768, 256, per_frame=True),
    Product("dfn2 lsnr", 1, 256),
    Product("nsnet2 fc1", 400, 161),
    Product("nsnet2 GRU, input", 1200, 400),
    Product("nsnet2 GRU, recurrent", 1200, 400, per_frame=True),
    Product("nsnet2 fc2", 600, 400),
    Product("nsnet2 fc3", 600, 600),
    Product("nsnet2 fc4", 161, 600),
    Product("firered dfsmn fc1", 256, 80),
    Product("firered project", 128, 256),
    Product("firered expand", 256, 128),
    Product("firered out", 1, 256),
)


def main() -> int:
    options = arguments()
    cases: dict[tuple[int, int, int, Layout], str] = {}
    if options.shapes:
        for shape in options.shapes.split(","):
            m, k, n = (int(part) for part in shape.split("x"))
            cases[m, k, n, options.layout] = "given"
    else:
        for width in (int(part) for part in options.widths.split(",")):
            for product in PRODUCTS:
                cases.setdefault((product.m, product.k, product.at(width), product.layout), f"{product.of}, P={width}")
    rows = []
    for (m, k, n, layout), of in cases.items():
        timing = time_product(m, k, n, isa=options.isa, layout=layout, cold=options.cold)
        rows.append(row(timing, of, layout))
        if not options.json:
            print(line(rows[-1]), flush=True)
    summary = summed_up(rows, current(options.isa))
    print(json.dumps(summary | {"products": rows}, indent=2) if options.json else told(summary))
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--isa", help="instruction set; by default the best, or PULSE_ISA")
    parser.add_argument("--widths", default="1,2,4,8,16", help="pulse widths")
    parser.add_argument("--shapes", help="MxKxN,... in place of the models' products")
    parser.add_argument("--layout", choices=("frame", "channel"), default="frame", help="of B, for --shapes")
    parser.add_argument("--cold", action="store_true", help="weights rotate through the third cache level")
    parser.add_argument("--json", action="store_true", help="print JSON in place of lines")
    return parser.parse_args()


def row(timing: Timing, of: str, layout: Layout) -> dict[str, Any]:
    """What is reported of one product."""
    best = timing.ranked()[0]
    picked = pick(timing.m, timing.k, timing.n, isa=timing.isa, layout=layout)
    return {
        "m": timing.m,
        "k": timing.k,
        "n": timing.n,
        "of": of,
        "limit_ns": timing.limit_ns,
        "best": best,
        "median_ns": timing.median_ns(best),
        "limit_share": timing.share(best),
        "picked": picked,
        "regret": timing.median_ns(picked) / timing.median_ns(best) - 1,
        "counted": timing.limit_ns >= COUNTED_NS and timing.m >= COUNTED_ROWS,
    }


def line(row: dict[str, Any]) -> str:
    return (
        f"{shape_of(row):>14} {row['limit_ns']:9.0f} ns {row['limit_share']:6.1%}{' ' if row['counted'] else '-'} "
        f"{row['best']:<20} picked {row['picked']:<20} +{row['regret']:5.1%}  {row['of']}"
    )


def shape_of(row: dict[str, Any]) -> str:
    return f"{row['m']}x{row['k']}x{row['n']}"


def summed_up(rows: list[dict[str, Any]], isa: str) -> dict[str, Any]:
    """Shares of the limit and regrets of the rule over the products that count."""
    counted = [row for row in rows if row["counted"]] or rows
    shares = sorted(row["limit_share"] for row in counted)
    regrets = sorted(row["regret"] for row in counted)
    return {
        "cpu": cpu_name(),
        "isa": isa,
        "counted": len(counted),
        "least_share": shares[0],
        "below_90": [shape_of(row) for row in counted if row["limit_share"] < BAR],
        "mean_share": math.exp(sum(map(math.log, shares)) / len(shares)),
        "mean_regret": sum(regrets) / len(regrets),
        "p90_regret": regrets[int(0.9 * (len(regrets) - 1))],
        "max_regret": regrets[-1],
    }


def told(found: dict[str, Any]) -> str:
    return (
        f"{found['isa']} on {found['cpu']}: {found['counted']} products counted\n"
        f"best kernel: at least {found['least_share']:.1%} of the limit, {found['mean_share']:.1%} on average; "
        f"below {BAR:.0%}: {', '.join(found['below_90']) or 'none'}\n"
        f"the rule's pick: slower than the best by {found['mean_regret']:.1%} on average, "
        f"{found['p90_regret']:.1%} at p90, {found['max_regret']:.1%} at most"
    )


if __name__ == "__main__":
    sys.exit(main())
