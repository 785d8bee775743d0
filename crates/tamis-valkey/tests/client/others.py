"""One test of the client's, test_bf_reserve, also reserves a count-min sketch and a top-k list, which are no filters and not ours.

These three calls are answered here; all that is BF or CF in the tests goes to the server. tests/clients.rs runs the tests without this too.
"""

import redis.commands.bf

redis.commands.bf.CMSBloom.initbydim = lambda *_: True
redis.commands.bf.CMSBloom.initbyprob = lambda *_: True
redis.commands.bf.TOPKBloom.reserve = lambda *_: True
