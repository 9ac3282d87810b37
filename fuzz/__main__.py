"""`make fuzz`: a campaign on the command line."""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from .campaign import SPACING, Campaign, Group, Statistics, usable_jobs
from .report import table, write, write_alike


def main() -> int:
    """Run a campaign; the exit status is 1 if something was found."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--programs", type=int, help="stop after so many programs")
    parser.add_argument("--seed", type=int, help="of the campaign; a random one by default")
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="SEED", help="the programs of these seeds, and no others"
    )
    parser.add_argument("--jobs", type=int, default=usable_jobs(), help="child processes at a time")
    parser.add_argument("--folder", type=Path, default=Path("findings"), help="where findings are written")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(SPACING)
    print("SEED=" + (f"{seed}" if options.only is None else ", ".join(map(str, options.only))), flush=True)

    def say(group: Group) -> None:
        path = write(options.folder, group)
        print(f"{path}: {group.finding.kind} in {group.finding.mode}: {group.finding.detail}", flush=True)

    def tell(so_far: Statistics) -> None:
        print(f"{so_far.programs:,} programs, {so_far.programs / so_far.seconds:.1f} a second", flush=True)

    campaign = Campaign(seed, options.jobs, say=say, tell=tell)
    if options.only is not None:
        campaign.only(options.only)
    else:
        campaign.run(options.minutes * 60, options.programs)
    print(table(campaign.statistics))
    for group in sorted(campaign.groups.values(), key=lambda group: -len(group.alike)):
        finding, called = group.finding, ", ".join(sorted(set(group.program.callees)))
        print(f"{1 + len(group.alike):6} {finding.kind} in {finding.mode}: {called}: {finding.detail}")
    alike = write_alike(options.folder, campaign.groups.values())
    if alike:
        print(f"{alike}: the seeds of programs that were taken for one of these: once it is mended, run them again")
    print(f"{len(campaign.groups)} findings" + (f", in {options.folder}" if campaign.groups else ""))
    return 1 if campaign.groups else 0


if __name__ == "__main__":
    sys.exit(main())
