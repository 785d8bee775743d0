"""What tests of all clusters share: keys, and the filter that one machine makes of them."""

import os

import tamis

KEYS = int(os.environ.get("TAMIS_CLUSTER_KEYS", "20000"))
"""scripts/long asks for more."""


def whole(keys, **options):
    """The filter of the command line, as test_bytes.py shows."""
    return tamis.Filter(keys, kind="rank-indexed", **options)


def check_semi_filter(kept, rows, matching, rate):
    """All that match, and of the rest at most the promised share: eight deviations above."""
    rest = rows - matching
    assert matching <= kept <= matching + rest * rate + 8 * (rest * rate) ** 0.5 + 1
