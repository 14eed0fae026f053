"""The sdist and the wheel, as ``make wheel`` builds and checks them."""

from pathlib import Path

from integration import wheel


def test_wheel_has_all_files_and_serves_in_a_fresh_environment(tmp_path: Path) -> None:
    sdist, built = wheel.build(tmp_path)
    assert (sdist.name.split("-")[0], built.name.split("-")[0]) == ("kclient_kafka",) * 2
    wheel.check_sdist(sdist)
    wheel.check_wheel(built)
    assert wheel.check_installed(built).split()[0] == "compiled"
