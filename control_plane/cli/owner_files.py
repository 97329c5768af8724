"""Reading a file of owners: its encoding and separator, and the line of the file of each row."""

import csv
import io
from collections import Counter
from pathlib import Path

import pandas as pd

SEPARATORS = ",;\t|"
# How files begin that are no text, and what to do about each.
_NO_TEXT = {
    b"\x1f\x8b": "it is compressed by gzip; unpack it, with gunzip for one",
    b"PK\x03\x04": "it is a zip archive or a spreadsheet; save the sheet as CSV, in UTF-8",
    b"PAR1": "it is a Parquet file; write its rows as CSV, with pandas for one",
}


def read_owner_file(file: Path) -> pd.DataFrame:
    """Return the rows as texts, numbered as the lines of the file; an owner may be called NA.

    Commas, semicolons, tabs and bars are told apart by the header line.

    Raises:
        ValueError: the file is no UTF-8 text in columns with a header.
    """
    text = _decoded(file.read_bytes())
    separator = _separator(text)
    _refuse_twice(text, separator)
    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            skipinitialspace=True,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        told = str(error).strip()
        raise ValueError(
            f"it is no CSV file with a header line, read with the separator {separator!r}: {told}"
        ) from error
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError("its rows have more cells than its header; name every column")
    if len(table.columns) == 1:
        raise ValueError(
            f"its header has one column, {table.columns[0]!r}, with the separator {separator!r}; "
            "separate columns by commas, semicolons or tabs"
        )
    table.index = pd.RangeIndex(2, len(table) + 2)
    table = table.fillna("")
    return table[(table != "").any(axis=1)]


def _decoded(data: bytes) -> str:
    for beginning, told in _NO_TEXT.items():
        if data.startswith(beginning):
            raise ValueError(told)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} holds the byte 0x{data[error.start]:02x}, which is not UTF-8; save the "
            "file as UTF-8"
        ) from None


def _separator(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text.partition("\n")[0], delimiters=SEPARATORS).delimiter
    except csv.Error:
        return ","


def _refuse_twice(text: str, separator: str) -> None:
    """Refuse a column that is there twice, which pandas would give another name."""
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        named = Counter(name.strip() for name in next(rows, []))
    except csv.Error as error:
        raise ValueError(f"its header line cannot be read: {error}") from error
    for name, times in named.items():
        if name and times > 1:
            raise ValueError(f"column {name!r} is there {times} times; keep one of them")
