"""Rates of quotas."""

import pytest

from kclient.broker.network.quota_rate import QuotaRate, QuotaWindow

# Results of Kafka's Rate with three samples of a second, and of QuotaUtils with a quota of 50.
KAFKA = [
    (2000, 20, 10, 2000, 0),
    (3001, 1, 10.4947526, 2001, 0),
    (3002, 1, 10.989011, 2002, 0),
    (4002, 1, 11.4885115, 2002, 0),
    (7002, 20, 10, 2000, 0),
    (7002, 1, 10.5, 2000, 0),
    (8003, 300, 160.41979, 2001, 4419),
    (8004, 20, 170.32967, 2002, 4818),
    (8005, 300, 320.01997, 2003, 10817),
    (8005, 1, 320.519221, 2003, 10837),
    (8405, 1, 267.582189, 2403, 10457),
    (17405, 300, 150, 2000, 4000),
    (17405, 20, 160, 2000, 4400),
    (17405, 20, 170, 2000, 4800),
    (18404, 300, 213.404468, 2999, 9801),
    (18504, 1, 305.383516, 2099, 10721),
    (27504, 100, 50, 2000, 0),
    (30504, 20, 10, 2000, 0),
    (30505, 20, 19.990005, 2001, 0),
    (31505, 1, 20.4897551, 2001, 0),
    (34505, 1, 0.5, 2000, 0),
    (43505, 1, 0.5, 2000, 0),
    (52505, 20, 10, 2000, 0),
    (55005, 300, 128, 2500, 3900),
    (56005, 300, 300, 2000, 10000),
    (65005, 300, 150, 2000, 4000),
    (66005, 100, 200, 2000, 6000),
    (66405, 20, 175, 2400, 6000),
    (66805, 1, 150.357143, 2800, 5620),
    (75805, 100, 50, 2000, 0),
    (78805, 300, 150, 2000, 4000),
    (79805, 300, 300, 2000, 10000),
    (80804, 1, 200.400133, 2999, 9021),
    (80805, 300, 450.5, 2000, 16020),
    (80905, 100, 476.666667, 2100, 17920),
    (81005, 300, 591.363636, 2200, 23820),
    (82006, 1, 455.247615, 2201, 17839),
    (82007, 100, 500.454133, 2202, 19838),
    (83007, 100, 375.390381, 3202, 20838),
    (92007, 300, 150, 2000, 4000),
]


def test_rates_and_throttle_times_are_those_of_kafka() -> None:
    rate = QuotaRate(QuotaWindow(3, 1000))
    for now_ms, value, per_second, elapsed_ms, throttle_ms in KAFKA:
        rate.record(value, now_ms)
        assert rate.per_second(now_ms) == pytest.approx(per_second)
        assert rate.elapsed_ms(now_ms) == elapsed_ms
        assert rate.throttle_ms(50, now_ms) == throttle_ms


def test_removed_value_does_not_count() -> None:
    rate = QuotaRate(QuotaWindow())
    rate.record(500, 10)
    rate.record(-500, 10)
    assert rate.per_second(10) == 0


def test_rate_is_idle_when_its_values_have_left_the_window() -> None:
    rate = QuotaRate(QuotaWindow(2, 1000))
    rate.record(500, 10)
    assert not rate.is_idle(2009)
    assert rate.is_idle(2010)
    assert rate.per_second(2010) == 0
