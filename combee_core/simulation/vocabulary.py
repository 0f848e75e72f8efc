"""The words that topics are made of: five places, so that two topics rarely share more than one word."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CLASSES = _words(
    """
    accrued amortised bespoke bonded callable cancelled capped chartered collared compounded
    contested convertible deferred discounted dormant escrowed exempted floating frozen guaranteed
    hedged indexed insured inverse irrevocable junior laddered leveraged matured nominal overdue
    perpetual pledged prepaid puttable quoted ranked reinsured restructured revolving secured
    stripped subordinated suspended syndicated tranched unlisted vested warehoused zonal
    """
)
TRADES = _words(
    """
    almond aviation barley bauxite brewery carbon cement chemical cobalt cocoa copper cotton dairy
    diamond ethanol fertiliser fishery forestry freight gallium geothermal grain granite helium
    hydropower jute leather linen lithium logging magnesium nickel olive orchard paper pharmacy
    poultry quarry railway rubber saffron salt shipping solar sugar tanker textile timber uranium
    vineyard wool zinc
    """
)
INSTRUMENTS = _words(
    """
    acceptances annuities bonds certificates covenants credits debentures deposits drafts equities
    forwards futures gilts indentures leases letters loans mandates mortgages notes options
    overdrafts payables pools receipts receivables repos rights scrips shares swaps trusts vouchers
    warrants
    """
)
CITIES = _words(
    """
    Aarhus Accra Antwerp Asunción Baku Bergen Bilbao Brisbane Calgary Cardiff Colombo Dakar Durban
    Fukuoka Gdańsk Genoa Ghent Hanoi Havana Izmir Jakarta Kampala Kyoto Lagos Leeds Lima Lisbon Lyon
    Malmö Manila Medellín Minsk Mombasa Montréal Muscat Nairobi Oslo Osaka Perth Porto Quito Riga
    Rosario Rotterdam Sofia Tallinn Tbilisi Tunis Utrecht Vilnius Warsaw Yerevan Zagreb
    """
)
CLIENTS = _words(
    """
    academic agricultural charitable commercial consular cooperative corporate diplomatic
    ecclesiastical family federal foreign institutional insurance judicial local maritime medical
    military municipal nonprofit offshore parliamentary pension private provincial regional retail
    royal sovereign student university wholesale
    """
)
PLACES = (CLASSES, TRADES, INSTRUMENTS, CITIES, CLIENTS)
CAPACITY = prod(map(len, PLACES))
"""How many topics the vocabulary can name."""

NUMBERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "factor": tuple(f"{hundredths / 100:g}" for hundredths in range(105, 300, 5)),
        "year": tuple(str(days) for days in range(240, 365)),
        "fee": tuple(f"{halves / 2:g}" for halves in range(5, 160)),
        "step": (
            "5",
            "10",
            "15",
            "20",
            "25",
            "30",
            "40",
            "50",
            "60",
            "75",
            "80",
            "90",
            "100",
            "120",
            "150",
            "200",
        ),
    }
)
"""The numbers that a rule of each kind may have, as they stand in its text."""


def topic(position: int) -> str:
    """The topic at `position` (0 to `CAPACITY` - 1) of all that can be named."""
    words = []
    for place in PLACES:
        position, at = divmod(position, len(place))
        words.append(place[at])
    kind, trade, instrument, city, client = words
    return f"{kind} {trade} {instrument} booked in {city} for {client} clients"
