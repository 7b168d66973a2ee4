"""Links as blocks of the picture: a device and what is stacked on it, alike ones together, bonds across nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from advisor.facts.links import Link
from advisor.report.devices import LinkRow, pcie_shape, stack_links
from advisor.report.folding import FOLD_FROM
from advisor.report.format import natural, ranked, runs
from advisor.report.picture.places import PictureFacts, known_nodes
from advisor.report.picture.records import Crossing, End, PictureBlock, Place, Words
from advisor.report.picture.wording import BELOW, first_names, is_below, limit_words, link_state, node_words, pcie_words
from advisor.rules.queries import is_physical, links_above

MAX_BLOCKS = 24
MAX_ADDRESSES = 3
_DETAILS = ("id", "mode", "remote", "group")


def link_key(name: str) -> str:
    return f"link:{name}"


def link_blocks(around: PictureFacts, place: Place) -> tuple[PictureBlock, ...]:
    """The links of one panel, each after what carries it; those that lie on several panels are not among them."""
    own = [link for link in around.facts.links if around.link_home(link) == place]
    # Rows in their order; four and more that differ only in their names, together at the first of them.
    rows = stack_links(own)
    groups: dict[Hashable, list[LinkRow]] = {}
    for row in rows:
        groups.setdefault(_row_look(around, row), []).append(row)
    found: dict[str, list[LinkRow]] = {}
    for group in groups.values():
        if len(group) < FOLD_FROM:
            found |= {row.link.name: [row] for row in group}
        else:
            found[group[0].link.name] = group
    blocks = [_rows_block(around, group) for group in [found[row.link.name] for row in rows if row.link.name in found]]
    return bound_blocks(around, blocks, MAX_BLOCKS)


def bound_blocks(
    around: PictureFacts, blocks: Sequence[PictureBlock], most: int, noun: str = "link"
) -> tuple[PictureBlock, ...]:
    """Not more than ``most`` blocks: what is not remarkable goes into one that counts the rest, the last first."""
    if len(blocks) <= most:
        return tuple(blocks)
    ranked_by_need = sorted(
        range(len(blocks)), key=lambda at: (not (blocks[at].marks or blocks[at].look == "warn"), at)
    )
    kept = frozenset(ranked_by_need[: most - 1])
    rest = [block for at, block in enumerate(blocks) if at not in kept]
    names = tuple(name for block in rest for name in block.names)
    fold = PictureBlock(
        key=f"rest:{rest[0].key}",
        title=f"and {len(names)} more {noun}s",
        names=names,
        look="quiet",
        marks=around.marked(names),
        folded=True,
    )
    return (*(block for at, block in enumerate(blocks) if at in kept), fold)


def link_crossings(around: PictureFacts) -> Iterator[Crossing]:
    """The lowest link of each stack that lies on several nodes, with what it carries; alike ones together."""
    across = {link.name: link for link in around.facts.links if len(known_nodes(around.link_places(link))) > 1}
    lowest = [link for link in across.values() if not across.keys() & set(link.lower)]
    groups: dict[Hashable, list[Link]] = {}
    for link in lowest:
        groups.setdefault((link.kind, frozenset(_link_roots(around, link))), []).append(link)
    for group in groups.values():
        first = group[0]
        nodes = known_nodes(around.link_places(first))
        upper = [one.name for link in group for one in links_above(link.name, around.links) if one not in group]
        names = tuple(dict.fromkeys([*(link.name for link in group), *upper]))
        roots = _link_roots(around, first)
        ends = tuple(End(place, link_key(root)) for root in roots for place in around.link_places(around.links[root]))
        mode = first.detail.get("mode")
        where = (known_nodes(around.link_places(around.links[name])) for name in roots)
        listed = ", ".join("/".join(map(str, found)) if found else "unknown" for found in where)
        words = (
            f"{first.kind} over {', '.join(first_names(roots, 6))} (nodes {listed})",
            *([f"mode {mode}"] if mode else []),
            *_link_shape(first),
            *([f"carries {', '.join(first_names(sorted(upper, key=natural), 6))}"] if upper else []),
            *(["LLT " + ", ".join(_llt_tags(around, names))] if _llt_tags(around, names) else []),
        )
        title = f"{runs([link.name for link in group], ranked(names))} crosses {node_words(nodes)}"
        yield Crossing("link", title, words, names, nodes, ends, around.marked(names))


def _link_roots(around: PictureFacts, link: Link) -> tuple[str, ...]:
    names = (one for one in link.lower if one in around.links)
    return tuple(sorted(names, key=natural))


def _row_look(around: PictureFacts, row: LinkRow) -> Hashable:
    """What two links must share to be drawn as one: never with an address, a finding, LLT, or what rests on it."""
    link = row.link
    if link.addresses or link.upper or link.default_route or around.marked([link.name]):
        return link.name
    if _llt_tags(around, [link.name]):
        return link.name
    same = (row.depth, link.kind, link.driver, link.speed_mbps, link.mtu, link.state, link.carrier, link.lower)
    return (*same, pcie_shape(link.pcie), tuple(sorted((name, link.detail.get(name)) for name in _DETAILS[1:])))


def _rows_block(around: PictureFacts, rows: Sequence[LinkRow]) -> PictureBlock:
    row, link = rows[0], rows[0].link
    names = tuple(one.link.name for one in rows)
    is_many = len(rows) > 1
    state = link_state(link)
    real = around.is_real and is_physical(link)
    return PictureBlock(
        key=link_key(link.name),
        title=runs(names, around.link_ranks) if is_many else link.name,
        names=names,
        aside=f"{len(rows)} × {state}" if is_many else state,
        lines=tuple(line for line in _link_lines(around, link, is_many=is_many) if line.pieces),
        look="warn" if real and is_below(link.pcie) else "",
        depth=row.depth,
        lanes=link.pcie.width if link.pcie else None,
        is_below=real and is_below(link.pcie),
        marks=around.marked(names),
        folded=is_many,
    )


def _link_lines(around: PictureFacts, link: Link, *, is_many: bool) -> Iterator[Words]:
    tags = _llt_tags(around, [link.name])
    kind = [] if link.kind in ("ethernet", "loopback") else [_link_kind(link, is_many=is_many)]
    yield Words((*kind, *([link.driver] if link.driver else []), *_link_shape(link)[:1]))
    if tags:
        yield Words((f"LLT {', '.join(tags)}",))
    if len(around.link_places(link)) > 1:
        yield Words(("rests on a link whose node is unknown, too",), "quiet")
    real = around.is_real
    words = pcie_words(link.pcie, real=real and is_physical(link))
    if words:
        is_low = real and is_physical(link) and is_below(link.pcie)
        yield Words((words, BELOW), "warn") if is_low else Words((words,), "quiet")
    limit = limit_words(link.pcie, real=real)
    if limit:
        yield Words((limit,), "quiet")
    if not is_many:
        far = [one for one in link.addresses if not one.startswith("fe80:") or len(link.addresses) == 1]
        yield Words((*first_names(far, MAX_ADDRESSES), *(["default route"] if link.default_route else [])), "quiet")


def _link_kind(link: Link, *, is_many: bool) -> str:
    details = (key for key in _DETAILS if link.detail.get(key) and not (is_many and key == "id"))
    return " ".join([link.kind, *(f"{key} {link.detail[key]}" for key in details)])


def _link_shape(link: Link) -> tuple[str, ...]:
    return (f"MTU {link.mtu}" if link.mtu is not None else "MTU unknown", link_state(link))


def _llt_tags(around: PictureFacts, names: Iterable[str]) -> tuple[str, ...]:
    """LLT's own names of the links, those of low priority said to be so."""
    llt, wanted = around.facts.llt, frozenset(names)
    found = (one for one in (llt.links if llt else ()) if one.link in wanted)
    return tuple(f"{one.tag} (low priority)" if one.low_priority else one.tag for one in found)
