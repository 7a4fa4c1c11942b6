"""Settings of a session that several threads want otherwise for a while; the session is a dictionary here."""

from __future__ import annotations

import threading
from typing import Any

from latecomer.spark.session import changed_settings


class Session:
    """What is asked of a session: settings to get, set and unset."""

    def __init__(self, **values: str) -> None:
        self.values, self.done = values, list[str]()

    @property
    def conf(self) -> Session:
        return self

    def get(self, name: str, default: str | None) -> str | None:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.done.append(name)
        self.values[name] = value

    def unset(self, name: str) -> None:
        del self.values[name]


def test_a_thread_that_wants_another_value_waits_and_all_is_put_back() -> None:
    session: Any = Session(partitions="200")
    seen, inside, first_may_end = dict[str, str](), threading.Event(), threading.Event()

    def first() -> None:
        with changed_settings(session, {"partitions": "5"}):
            inside.set()
            first_may_end.wait(10)
            seen["first"] = session.values["partitions"]

    def second() -> None:
        with changed_settings(session, {"partitions": "2", "other": "1"}):
            seen["second"] = session.values["partitions"]

    threads = [threading.Thread(target=each) for each in (first, second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive(), "it waits for the first"
    first_may_end.set()
    for thread in threads:
        thread.join(10)
    assert seen == {"first": "5", "second": "2"}
    assert session.values == {"partitions": "200"}


def test_threads_that_want_the_same_share_it_and_the_last_one_puts_it_back() -> None:
    session: Any = Session(partitions="200")
    inside, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with changed_settings(session, {"partitions": "5"}):
            inside.set()
            may_end.wait(10)

    thread = threading.Thread(target=other)
    with changed_settings(session, {"partitions": "5"}):
        thread.start()
        assert inside.wait(10)
    assert session.values == {"partitions": "5"}, "the other thread still needs it"
    may_end.set()
    thread.join(10)
    assert session.values == {"partitions": "200"}


def test_a_thread_may_change_what_it_has_changed_itself() -> None:
    session: Any = Session()
    with changed_settings(session, {"partitions": "5"}):
        with changed_settings(session, {"partitions": "2"}):
            assert session.values == {"partitions": "2"}
        assert session.values == {"partitions": "5"}
    assert session.values == {}


def test_what_is_as_wanted_is_not_set_and_what_others_set_is_not_put_back() -> None:
    session: Any = Session(partitions="5", provider="theirs")
    with changed_settings(session, {"partitions": "5", "provider": "ours"}):
        assert session.done == ["provider"]
        session.values["provider"] = "changed by the user meanwhile"
    assert session.values == {"partitions": "5", "provider": "changed by the user meanwhile"}
