"""Reading a file of owners: its encoding and separator, and the line of the file of each row."""

import csv
import io
from pathlib import Path

import pandas as pd

SEPARATORS = ",;\t|"


def read_owner_file(file: Path) -> pd.DataFrame:
    """Return the rows as texts, numbered as the lines of the file; an owner may be called NA.

    Commas, semicolons, tabs and bars are told apart by the header line.

    Raises:
        ValueError: the file is no UTF-8 text in columns with a header.
    """
    text = _decoded(file.read_bytes())
    separator = _separator(text)
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
