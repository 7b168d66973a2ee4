"""Links and accelerators as blocks of the picture: alike ones together, stacked links below, bonds across nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from advisor.facts.accelerators import Accelerator
from advisor.facts.links import Link
from advisor.report.devices import LinkRow, pcie_shape, stack_links
from advisor.report.folding import FOLD_FROM
from advisor.report.format import natural, ranked, runs
from advisor.report.picture.records import Crossing, End, PictureBlock, Place, Words
from advisor.report.picture.scene import (
    BELOW,
    Scene,
    bound_blocks,
    by_key,
    first_names,
    home_place,
    known_nodes,
    link_state,
    node_words,
    say,
)
from advisor.rules.queries import is_physical, links_above

_DETAILS = ("id", "mode", "remote", "group")
_KINDS = {"gpu": "GPU", "dpu": "DPU", "accelerator": "Accelerator", "quickassist": "QuickAssist"}


def link_blocks(scene: Scene, place: Place) -> tuple[PictureBlock, ...]:
    """Return the links of a panel, each after its carrier; not those that lie on several panels."""
    rows = stack_links(link for link in scene.facts.links if home_place(scene.link_places(link)) == place)
    # Rows in their order; four and more that differ only in their names, together at the first of them.
    groups = [
        part
        for group in by_key(rows, lambda row: _row_look(scene, row))
        for part in ([group] if len(group) >= FOLD_FROM else [[row] for row in group])
    ]
    order = {row.link.name: at for at, row in enumerate(rows)}
    groups.sort(key=lambda group: order[group[0].link.name])
    return bound_blocks(scene, [_rows_block(scene, group) for group in groups], 24)


def _row_look(scene: Scene, row: LinkRow) -> Hashable:
    """Return the traits of links that are drawn together: no address, no finding, no LLT, and nothing rests on them."""
    link = row.link
    if link.addresses or link.upper or link.default_route or scene.marked([link.name]) or _llt_tags(scene, [link.name]):
        return link.name
    same = (row.depth, link.kind, link.driver, link.speed_mbps, link.mtu, link.state, link.carrier, link.lower)
    return (*same, pcie_shape(link.pcie), *map(link.detail.get, _DETAILS[1:]))


def _rows_block(scene: Scene, rows: Sequence[LinkRow]) -> PictureBlock:
    link, is_many = rows[0].link, len(rows) > 1
    names = tuple(row.link.name for row in rows)
    state = link_state(link)
    is_slow = is_physical(link) and scene.is_slow(link.pcie)
    return scene.block(
        f"link:{link.name}",
        runs(names, scene.link_ranks) if is_many else link.name,
        names,
        f"{len(rows)} × {state}" if is_many else state,
        _link_lines(scene, link, is_many=is_many, is_slow=is_slow),
        depth=rows[0].depth,
        lanes=link.pcie.width if link.pcie else None,
        is_slow=is_slow,
        is_folded=is_many,
    )


def _link_lines(scene: Scene, link: Link, *, is_many: bool, is_slow: bool) -> Iterator[Words]:
    details = (f"{key} {link.detail[key]}" for key in _DETAILS[is_many:] if link.detail.get(key))
    kind = "" if link.kind in ("ethernet", "loopback") else " ".join([link.kind, *details])
    yield say(kind, link.driver, _mtu_words(link))
    yield say(*_llt_tags(scene, [link.name]))
    if len(scene.link_places(link)) > 1:
        yield say("rests on a link whose node is unknown, too", look="quiet")
    words = scene.pcie_words(link.pcie, is_real=is_physical(link))
    if words:
        yield say(words, BELOW, look="warning") if is_slow else say(words, look="quiet")
    yield say(scene.limit_words(link.pcie), look="quiet")
    if not is_many:
        far = [one for one in link.addresses if not one.startswith("fe80:") or len(link.addresses) == 1]
        yield say(*first_names(far, 3), "default route" if link.default_route else "", look="quiet")


def _mtu_words(link: Link) -> str:
    return f"MTU {link.mtu}" if link.mtu is not None else "MTU unknown"


def _llt_tags(scene: Scene, names: Iterable[str]) -> tuple[str, ...]:
    """Return LLT's own names of the links as one piece, if it has any."""
    wanted = frozenset(names)
    tags = [
        f"{one.tag} (low priority)" if one.low_priority else one.tag
        for one in (scene.facts.llt.links if scene.facts.llt else ())
        if one.link in wanted
    ]
    return (f"LLT {', '.join(tags)}",) if tags else ()


def link_crossings(scene: Scene) -> Iterator[Crossing]:
    """Return the lowest link of each stack that lies on several nodes, with the links on it; alike ones together."""
    across = {link.name: link for link in scene.facts.links if len(known_nodes(scene.link_places(link))) > 1}
    lowest = [link for link in across.values() if across.keys().isdisjoint(link.lower)]
    for group in by_key(lowest, lambda link: (link.kind, frozenset(scene.links.keys() & set(link.lower)))):
        first = group[0]
        nodes = known_nodes(scene.link_places(first))
        upper = [one.name for link in group for one in links_above(link.name, scene.links) if one not in group]
        names = tuple(dict.fromkeys([*(link.name for link in group), *upper]))
        known = sorted((name for name in first.lower if name in scene.links), key=natural)
        roots = {name: scene.link_places(scene.links[name]) for name in known}
        where = ("/".join(map(str, known_nodes(places))) or "unknown" for places in roots.values())
        mode = first.detail.get("mode")
        words = (
            f"{first.kind} over {', '.join(first_names([*roots], 6))} (nodes {', '.join(where)})",
            f"mode {mode}" if mode else "",
            _mtu_words(first),
            link_state(first),
            f"carries {', '.join(first_names(sorted(upper, key=natural), 6))}" if upper else "",
            *_llt_tags(scene, names),
        )
        title = f"{runs([link.name for link in group], ranked(names))} crosses {node_words(nodes)}"
        ends = tuple(End(place, f"link:{name}") for name, places in roots.items() for place in places)
        yield Crossing("link", title, tuple(filter(None, words)), names, nodes, ends, scene.marked(names))


def accelerator_blocks(scene: Scene, place: Place) -> tuple[PictureBlock, ...]:
    """Return the accelerators of a panel; cards of one model, driver and width are one block."""
    cards = [card for card in scene.facts.accelerators if scene.place(card.numa_node) == place]
    groups = by_key(cards, lambda card: (_card_title(card), card.driver, scene.pcie_words(card.pcie)))
    return bound_blocks(scene, [_card_block(scene, cards) for cards in groups], 8, "accelerator")


def _card_title(card: Accelerator) -> str:
    """Return ``GPU NVIDIA 10de:20b0``."""
    return " ".join(filter(None, (_KINDS[card.kind], card.vendor, card.ids)))


def _card_block(scene: Scene, cards: Sequence[Accelerator]) -> PictureBlock:
    card, addresses = cards[0], tuple(card.address for card in cards)
    is_slow, words = scene.is_slow(card.pcie), scene.pcie_words(card.pcie)
    return scene.block(
        f"accelerator:{card.address}",
        _card_title(card),
        addresses,
        f"{len(cards)} ×" if len(cards) > 1 else "",
        (
            say(card.driver or "no driver"),
            say(words, look="warning" if is_slow else "quiet"),
            say(*first_names(addresses, 4), look="quiet"),
        ),
        lanes=card.pcie.width if card.pcie else None,
        is_slow=is_slow,
        is_folded=len(addresses) > 4,
    )
