-- SPDX-License-Identifier: Apache-2.0
-- duckdb.sql - the summaries of a folder as tables of DuckDB (docs/fleet.md): `tracewheel fleet setup --print duckdb --from FOLDER | duckdb -init /dev/stdin`.
-- Nothing is loaded before it is asked for. Calls that cross a segment's border are in rows `return` and `open`, not in the sums of `functions`.

-- Every row, columns by the names of their members.
CREATE OR REPLACE VIEW summaries AS
SELECT * FROM read_json($OBJECTS, format = 'newline_delimited', filename = 'path', maximum_object_size = 16777216, columns = {
    kind: 'VARCHAR', node: 'VARCHAR', seg: 'VARCHAR', version: 'UINTEGER', "from": 'UBIGINT', "to": 'UBIGINT', events: 'UBIGINT', lost: 'UBIGINT',
    damaged: 'UBIGINT', bytes: 'UBIGINT', number: 'UBIGINT', process: 'UBIGINT', start: 'UBIGINT', lease: 'UBIGINT', image_segment: 'UBIGINT',
    events_before: 'UBIGINT', kept: 'UBIGINT', "last": 'VARCHAR', program: 'VARCHAR', id: 'UINTEGER', name: 'VARCHAR', module: 'VARCHAR',
    "function": 'VARCHAR', linkage: 'VARCHAR', calls: 'UBIGINT', returned: 'UBIGINT', exceptions: 'UBIGINT', cut: 'UBIGINT', lossy: 'VARCHAR',
    total: 'UBIGINT', self: 'UBIGINT', min: 'UBIGINT', max: 'UBIGINT', bins: 'USMALLINT[]', counts: 'UBIGINT[]', cause: 'VARCHAR', thread: 'VARCHAR',
    "order": 'UINTEGER', exception: 'BOOLEAN', "at": 'UBIGINT', own: 'UBIGINT', "inner": 'UBIGINT', within: 'UBIGINT', dropped: 'UBIGINT',
    ids: 'UINTEGER[]', totals: 'UBIGINT[]', label: 'VARCHAR', trace_id: 'VARCHAR', first_serial: 'BIGINT', last_serial: 'BIGINT', sends: 'UBIGINT',
    receives: 'UBIGINT', prints: 'UBIGINT', "first": 'UBIGINT', left_out: 'UBIGINT'});

CREATE OR REPLACE VIEW segments AS
SELECT path, node, seg, make_timestamp_ns("from"::BIGINT) AS "from", make_timestamp_ns("to"::BIGINT) AS "to", events, lost, damaged, bytes, program, process,
    kind = 'dropped' AS is_dropped
FROM summaries WHERE kind IN ('segment', 'dropped');

-- The middle of a bin of durations, in nanoseconds.
CREATE OR REPLACE MACRO bin_middle(bin) AS CASE WHEN bin < 8 THEN bin::UBIGINT ELSE (((8 + bin % 8) * 2 + 1)::UBIGINT << (bin // 8 - 1)::UBIGINT) >> 1 END;

-- Calls and nanoseconds by function, of all summaries; p99 is true to an eighth.
CREATE OR REPLACE VIEW functions AS
WITH rows AS (SELECT name, calls, returned, exceptions, cut, lossy::UBIGINT AS lossy, total, self, min, max, bins, counts FROM summaries WHERE kind = 'function'),
sums AS (
    SELECT name, sum(calls) AS calls, sum(returned) AS returned, sum(exceptions) AS exceptions, sum(cut) AS cut, sum(lossy) AS lossy,
        sum(total) AS total, sum(self) AS self, min(min) AS min, max(max) AS max
    FROM rows GROUP BY name),
times AS (SELECT name, bin, sum(count) AS count FROM (SELECT name, unnest(bins) AS bin, unnest(counts) AS count FROM rows) GROUP BY name, bin),
places AS (
    SELECT name, bin, sum(count) OVER (PARTITION BY name ORDER BY bin) AS through, sum(count) OVER (PARTITION BY name) AS timed FROM times),
quantiles AS (
    SELECT name, bin_middle(min(bin) FILTER (WHERE through > floor(0.5 * timed))) AS median,
        bin_middle(min(bin) FILTER (WHERE through > floor(0.99 * timed))) AS p99
    FROM places GROUP BY name)
SELECT sums.name, calls, returned, exceptions, cut, lossy, total, self, min, greatest(min, least(max, median)) AS median,
    greatest(min, least(max, p99)) AS p99, max
FROM sums LEFT JOIN quantiles USING (name);
