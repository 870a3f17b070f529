# SPDX-License-Identifier: Apache-2.0
"""Captures of Tracewheel in Python.

    import tracewheel

    capture = tracewheel.open("app.tw")
    for event in capture.events("libc:read"):
        print(event.time, event.thread.name, event.args)
    frame = capture.calls().to_pandas()
    print(frame.groupby("function")["self"].sum().nlargest(10))

Times and durations are in nanoseconds; times are integers that count from the first event of the recording. Tables are columns of numpy, or of
the module array where numpy is not installed. docs/python.md has more, and says what is missing in a capture: Capture.info.
"""

import array as _array
import json as _json
import os as _os
import sys as _sys
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _tracewheel

try:
    import numpy as _numpy
except ImportError:
    _numpy = None  # type: ignore[assignment]

__all__ = ["Capture", "Event", "Function", "Table", "Thread", "NONE", "open"]

#: In columns of numbers of functions and threads: there is none.
NONE = 0xFFFFFFFF
#: How a call ended, by the numbers in the column `ended`.
ENDED = {0: "returned", 1: "exception", 2: "cut", 3: "open", 4: "lost", 255: ""}
_KINDS: Dict[str, int] = _tracewheel.kinds()
_KIND_NAMES = {number: name for name, number in _KINDS.items()}
_Patterns = Union[None, str, Sequence[str]]


class Function(NamedTuple):
    """A function of a capture."""

    name: str  #: as `report` shows it: module:function/arity
    module: str
    function: str  #: demangled
    linkage: str
    arity: Optional[int]


class Thread(NamedTuple):
    """A thread of a capture."""

    id: int  #: the system's number
    name: str
    process: int  #: the system's number
    program: str


_NO_THREAD = Thread(0, "", 0, "")


class Event:
    """One event. What only some kinds have is in `details`: the members of `print --format json` (docs/json.md)."""

    __slots__ = ("time", "kind", "function", "thread", "pid", "_details")

    def __init__(self, time: int, kind: str, function: Optional[Function], thread: Thread, pid: Optional[str], details: Any):
        self.time = time
        self.kind = kind
        self.function = function
        self.thread = thread
        self.pid = pid
        self._details = details

    @property
    def details(self) -> Dict[str, Any]:
        if not isinstance(self._details, dict):
            self._details = _json.loads(self._details) if self._details else {}
        return self._details

    @property
    def args(self) -> Optional[List[Any]]:
        """The arguments of a call, if they were recorded."""
        return self.details.get("args")

    @property
    def value(self) -> Any:
        """What a call returned; None also if that was not recorded."""
        return self.details.get("value")

    def __repr__(self) -> str:
        name = self.function.name if self.function else ""
        return f"<{self.time} {self.kind} {name} {self.details if self._details else ''}>".replace(" >", ">")


class Table(Dict[str, Any]):
    """Columns of equal length, by name."""

    def __init__(self, capture: "Capture", columns: Dict[str, Any]):
        super().__init__(columns)
        self._capture = capture

    def __len__(self) -> int:
        return len(next(iter(self.values()))) if self.keys() else 0

    def to_pandas(self) -> Any:
        """A DataFrame, in which functions, threads, kinds and ends are categories with their names."""
        import pandas

        columns = dict(self)
        for name, names in self._capture._categories(self).items():
            columns[name] = pandas.Categorical.from_codes(names[0], categories=names[1])
        return pandas.DataFrame(columns)


def _column(rows: int, code: str) -> Any:
    if _numpy is not None:
        return _numpy.empty(rows, dtype={"q": "i8", "d": "f8", "Q": "u8", "I": "u4", "B": "u1"}[code])
    return _array.array(code, bytes(rows * _array.array(code).itemsize))


class _Columns:
    """Arrays for one batch after another. Those that nobody holds any longer are filled again, because memory that is new costs as much as what is
    written there. A view, a table, a buffer or a data frame over an array holds it."""

    def __init__(self, rows: int, codes: str):
        self._rows, self._codes = rows, codes
        self._sets: List[List[Any]] = []

    def take(self) -> List[Any]:
        for columns in self._sets:
            if all(_sys.getrefcount(columns[i]) == _HELD_BY_A_LIST for i in range(len(columns))):
                return columns
        columns = [_column(self._rows, code) for code in self._codes]
        self._sets = [columns] + self._sets[:_SETS - 1]
        return columns


#: Of batches that are in use at a time: the one that is filled, and that before it.
_SETS = 3
_one = [object()]
#: What getrefcount() says of an object that only a list has.
_HELD_BY_A_LIST = _sys.getrefcount(_one[0])


def _patterns(functions: _Patterns) -> Optional[List[str]]:
    if functions is None:
        return None
    return [functions] if isinstance(functions, str) else list(functions)


def _limit(value: Optional[int], name: str) -> int:
    if value is None:
        return -1
    if isinstance(value, float):
        raise TypeError(f"{name} is in whole nanoseconds: round({value!r} * 1e9)")
    if value < 0:
        raise ValueError(f"{name} counts from the first event of the recording, and is not below 0")
    return int(value)


class Capture:
    """A capture, or a file with a stream of one. Use it in `with`, or close() it."""

    def __init__(self, path: Union[str, "_os.PathLike[str]"]):
        self._capture = _tracewheel.open(path)
        self._functions: Optional[List[Function]] = None
        self._threads: Optional[Dict[int, Thread]] = None

    def close(self) -> None:
        self._capture.close()

    def __enter__(self) -> "Capture":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @property
    def info(self) -> Dict[str, Any]:
        """Numbers of the whole. `whole` is true if nothing is missing; `missing` says what is, by cause (docs/json.md, account)."""
        return self._capture.info()

    @property
    def functions(self) -> List[Function]:
        """The functions: columns have their numbers. The first three stand for no function."""
        if self._functions is None:
            self._functions = [Function(*row) for row in self._capture.functions()]
        return self._functions

    @property
    def threads(self) -> Dict[int, Thread]:
        """The threads by the numbers that columns have."""
        if self._threads is None:
            self._threads = {number: Thread(*row) for number, row in self._capture.threads().items()}
        return self._threads

    def events(self, functions: _Patterns = None, *, start: Optional[int] = None, end: Optional[int] = None,
               kinds: Optional[Iterable[str]] = None, thread: Optional[int] = None) -> Iterator[Event]:
        """Events in their order, with what they hold. Losses are always among them.

        functions   patterns as of -t: "libc:read", ["app:*", "libssl:_"]
        start, end  times: at or after, and before
        kinds       names: "call", "return_from", "send" ...
        thread      the system's number of one
        """
        reader = self._events(functions, start, end, kinds, thread)
        names, threads = self.functions, self.threads
        while rows := reader.next_rows():
            for time, kind, function, number, pid, details in rows:
                yield Event(time, _KIND_NAMES.get(kind, str(kind)), None if function is None else names[function],
                            threads.get(number, _NO_THREAD), pid, details)

    def event_batches(self, functions: _Patterns = None, *, start: Optional[int] = None, end: Optional[int] = None,
                      kinds: Optional[Iterable[str]] = None, thread: Optional[int] = None, words: int = 0,
                      rows: int = 1 << 15, order: bool = True) -> Iterator[Table]:
        """The same as numbers: tables of at most `rows` events with the columns time, kind, function, thread, and word1 ... of the payload.

        Payloads are words as they were recorded: registers, where arguments have no types. order=False is faster where several threads ran
        at once: events of each thread come in their order, a block of one thread after one of another, without losses of threads that got no ring.
        """
        reader = self._events(functions, start, end, kinds, thread, 1 if order else 2)
        names = ["time", "kind", "function", "thread"] + [f"word{i + 1}" for i in range(words)]
        return self._batches(lambda columns: reader.fill(columns), names, "qBII" + "Q" * words, rows)

    def calls(self, functions: _Patterns = None, *, start: Optional[int] = None, end: Optional[int] = None,
              thread: Optional[int] = None, values: bool = False, states: bool = False) -> Table:
        """Calls with their durations, in the order in which they ended; docs/python.md has the columns.

        values  args, result and errno too
        states  ran, preempted and off too: how durations divide in captures of `record --sched`
        """
        tables = list(self.call_batches(functions, start=start, end=end, thread=thread, values=values, states=states))
        if len(tables) == 1:
            return tables[0]
        if not tables:
            names, codes = _call_columns(states)
            return Table(self, {name: _column(0, code) for name, code in zip(names, codes)} | ({name: [] for name in _VALUE_COLUMNS} if values else {}))
        return Table(self, {name: _joined([table[name] for table in tables]) for name in tables[0]})

    def call_batches(self, functions: _Patterns = None, *, start: Optional[int] = None, end: Optional[int] = None,
                     thread: Optional[int] = None, values: bool = False, states: bool = False, rows: int = 1 << 15) -> Iterator[Table]:
        """The same, in tables of at most `rows` calls: for captures larger than memory."""
        reader = self._capture.calls(_patterns(functions), _limit(start, "start"), _limit(end, "end"), -1 if thread is None else thread, values, states)
        details: Optional[List[Any]] = [] if values else None
        for table in self._batches(lambda columns: reader.fill(columns, details), *_call_columns(states), rows):
            if details is not None:
                table.update(_values_of(details))
                details.clear()
            yield table

    def _events(self, functions: _Patterns, start: Optional[int], end: Optional[int], kinds: Optional[Iterable[str]],
                thread: Optional[int], order: int = 0) -> Any:
        mask = 0
        for name in [kinds] if isinstance(kinds, str) else kinds or ():
            if name not in _KINDS:
                raise ValueError(f"no kind of events is named {name!r}: there are {', '.join(sorted(_KINDS))}")
            mask |= 1 << min(_KINDS[name], 63)
        return self._capture.events(_patterns(functions), _limit(start, "start"), _limit(end, "end"), mask, -1 if thread is None else thread, order)

    def _batches(self, fill: Any, names: Sequence[str], codes: str, rows: int) -> Iterator[Table]:
        if rows < 1:
            raise ValueError("rows is 1 or more")
        columns = _Columns(rows, codes)
        # No name here may hold an array while the caller works.
        while table := self._batch(fill, names, columns.take(), rows):
            yield table
            del table

    def _batch(self, fill: Any, names: Sequence[str], columns: List[Any], rows: int) -> Optional[Table]:
        count = fill(columns)
        is_whole = _numpy is None and count == rows
        return Table(self, dict(zip(names, columns if is_whole else [column[:count] for column in columns]))) if count else None

    def _categories(self, table: Table) -> Dict[str, Any]:
        """By column: codes and names of the categories."""
        found: Dict[str, Any] = {}
        functions = [function.name for function in self.functions]
        threads = [f"{thread.id} {thread.name}".rstrip() for thread in self.threads.values()]
        tables = {"function": (range(len(functions)), functions), "caller": (range(len(functions)), functions),
                  "thread": (self.threads.keys(), threads), "kind": (_KIND_NAMES.keys(), list(_KIND_NAMES.values())),
                  "ended": ([number for number in ENDED if number != 255], [name for name in ENDED.values() if name])}
        for column, (numbers, names) in tables.items():
            if column not in table:
                continue
            # Two functions or threads may have one name.
            unique = list(dict.fromkeys(names))
            places = {name: place for place, name in enumerate(unique)}
            code_of = {number: places[name] for number, name in zip(numbers, names)}
            found[column] = _codes(table[column], code_of), unique
        return found


_CALL_COLUMNS = ("start", "duration", "self", "id", "parent", "function", "caller", "thread", "depth", "ended")
_CALL_CODES = "qddqqIIIIB"
_STATE_COLUMNS = ("ran", "preempted", "off")
_VALUE_COLUMNS = ("args", "result", "errno")


def _call_columns(has_states: bool) -> Tuple[Sequence[str], str]:
    """Names and codes."""
    return (_CALL_COLUMNS + _STATE_COLUMNS, _CALL_CODES + "ddd") if has_states else (_CALL_COLUMNS, _CALL_CODES)


def _codes(column: Any, code_of: Dict[int, int]) -> Any:
    """Codes of categories; -1 for numbers that are none."""
    if _numpy is None:
        return [code_of.get(number, -1) for number in column]
    numbers, places = _numpy.unique(column, return_inverse=True)
    return _numpy.array([code_of.get(int(number), -1) for number in numbers], dtype="i4")[places]


def _joined(columns: List[Any]) -> Any:
    if _numpy is not None and not isinstance(columns[0], list):
        return _numpy.concatenate(columns)
    whole = columns[0][:]
    for column in columns[1:]:
        whole.extend(column)
    return whole


def _values_of(details: List[Any]) -> Dict[str, List[Any]]:
    found: Dict[str, List[Any]] = {name: [] for name in _VALUE_COLUMNS}
    for call, end in details:
        result = _json.loads(end) if end else {}
        found["args"].append(_json.loads(call).get("args") if call else None)
        found["result"].append(result.get("value", result.get("values", [None])[0]))
        found["errno"].append(result.get("errno"))
    return found


def open(path: Union[str, "_os.PathLike[str]"]) -> Capture:
    """A capture NAME.tw, or a file that `record -o -` wrote. FileNotFoundError, PermissionError, OSError."""
    return Capture(path)
