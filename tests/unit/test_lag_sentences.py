"""The sentences: they name the figures, and never more than is known."""

import re
from dataclasses import replace

import pytest

from switchover.lag import sentences
from switchover.lag.samples import NONE
from switchover.lag.verdicts import Verdict
from unit.lag_readings import ORDERS, Reading, every_poll, judged
from unit.test_lag_kernel import END, ENDS, STEADY, STOPPED, TABLE, N, newest

SENTENCES = {
    "UNKNOWN": "7 valid samples over 90 s, the newest 0 s old, the longest hole 15 s",
    "LOST": "the log starts at 99001 and the committed offset is 99000: what lay between was deleted before it was consumed",
    "BEYOND_END": f"the committed offset {END + 1} is beyond the high watermark (end {END}) in two samples in a row",
    "UNCOMMITTED": f"the group has no committed offset, and the log has {END} records to read",
    "REWOUND": f"the committed offset {END - 36_000} fell by 4000 and has not come back for 15 s (allowed: 60 s)",
    "IDLE": "nothing arrived and nothing was committed for 585 s, lag 0",
    "OK": "lag 2000, the oldest uncommitted record is 2 s old (allowed: 60 s)",
    "STALLED": "commits go on (the last 1 s ago) and the committed offset has stood for at least 585 s (allowed: 60 s); "
               "lag 586000, the oldest uncommitted record is at least 585 s old",
    "STOPPED": "no new offset was committed for at least 585 s (allowed: 60 s); lag 586000, the oldest uncommitted "
               "record is at least 585 s old",
    "CATCHING_UP": "lag 215000, the oldest uncommitted record is 215 s old, "
                   "shrinking by 1000.0 records/s, gone in about 215 s",
    "BEHIND": "lag 139000, the oldest uncommitted record is 139 s old (allowed: 60 s), "
              "growing (+66.7 records/s, 1000.0 arrive)",
}


@pytest.mark.parametrize("name", TABLE)
def test_each_verdict_has_a_sentence_with_its_figures(name):
    assert sentences.sentence(ORDERS, judged(TABLE[name][0]), 0) == f"orders-0 is {name}: {SENTENCES[name]}"
    assert list(SENTENCES) == [each.name for each in Verdict]


@pytest.mark.parametrize(("readings", "part"), [
    ([Reading(0, 0, 0, valid=False)], "no valid sample in the window"),
    (newest(STEADY, c=END + 1), f"the committed offset {END + 1} is beyond the high watermark in the newest sample alone"),
    (every_poll([NONE] * N, [500] * N, start=500), "there is nothing to be read in the log, and nothing was committed"),
    (newest(STEADY, c=END), "is OK: lag 0 (allowed: 60 s)"),
    (STOPPED[:25] + [replace(r, c=100_000) for r in STOPPED[25:]], "committed for 210 s (allowed: 60 s)"),
    (every_poll([end - 90_000 for end in ENDS], ENDS), "without a trend (+0.0 records/s"),
    (every_poll([1500 * i + end for i, end in enumerate(ENDS)], [end + 10**7 for end in ENDS]),
     "shrinking (-100.0 records/s, 1000.0 arrive"),
    (every_poll([end - 5000 * i for i, end in enumerate(ENDS[:-2])] + [ENDS[-2] - 100_000, ENDS[-1] - 90_000], ENDS),
     "past its peak (+"),
])
def test_the_rarer_findings_have_words_of_their_own(readings, part):
    assert part in sentences.sentence(ORDERS, judged(readings), 0)


def test_an_age_beyond_the_window_is_never_a_number_of_its_own():
    for readings in (STOPPED, TABLE["STALLED"][0]):
        ages = re.findall(r"record is (.*?) \d+ s old", sentences.sentence(ORDERS, judged(readings), 0))
        assert ages == ["at least"]


def test_an_expected_partition_without_samples_has_a_sentence():
    assert sentences.missing(ORDERS) == "orders-0 is UNKNOWN: it is subscribed to, and nothing was sampled"
