-- SPDX-License-Identifier: Apache-2.0
-- clickhouse.sql - tables that a ClickHouse server, 24.10 or later, fills by itself with the summaries of a store (docs/fleet.md).
--
-- `tracewheel fleet setup` puts in the name of the database and s3(...) or file(...), and sends these statements; all may be sent again.
--
-- Every summary is counted once and whole, whatever is killed: each time that an object is read has a number, `pass`, and an object enters `loaded`,
-- with that number, when rows of all of its lines are there. Rows of other passes are copies and halves that nobody reads.
CREATE DATABASE IF NOT EXISTS $DATABASE;

-- The rows of summaries, columns by the names of their members, and of kind `aside` one of each object that is no summary, with the reason as name.
-- A question that counts reads passes in `loaded` only, as the view `functions` does.
CREATE TABLE IF NOT EXISTS $DATABASE.summaries
(
    path String, pass UInt64, row UInt32, `rows` UInt32, inserted DateTime, minute DateTime('UTC'),
    kind LowCardinality(String), node LowCardinality(String), seg String, version UInt32,
    `from` UInt64, `to` UInt64, events UInt64, lost UInt64, damaged UInt64, bytes UInt64, number UInt64, process UInt64, start UInt64, lease UInt64,
    image_segment UInt64, events_before UInt64, kept UInt64, `last` UInt64, program LowCardinality(String),
    id UInt32, name LowCardinality(String), module LowCardinality(String), function LowCardinality(String), linkage LowCardinality(String),
    calls UInt64, returned UInt64, exceptions UInt64, cut UInt64, lossy UInt64, total UInt64, self UInt64, min UInt64, max UInt64,
    bins Array(UInt16), counts Array(UInt64),
    cause LowCardinality(String), thread LowCardinality(String), `order` UInt32, exception Bool, at UInt64, own UInt64, inner UInt64, within UInt64,
    dropped UInt64, ids Array(UInt32), totals Array(UInt64),
    label String, trace_id String, first_serial Int64, last_serial Int64, sends UInt64, receives UInt64, prints UInt64, `first` UInt64, left_out UInt64,
    INDEX by_inserted inserted TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(minute)
ORDER BY (minute, path, pass, row);

-- Objects that are there as a whole; `reason` says why one is set aside, and is empty for summaries, which have the columns of their first row.
CREATE TABLE IF NOT EXISTS $DATABASE.loaded
(
    path String, pass UInt64, visible DateTime64(9), reason String, minute DateTime('UTC'),
    kind LowCardinality(String), node LowCardinality(String), seg String, version UInt32,
    `from` UInt64, `to` UInt64, events UInt64, lost UInt64, damaged UInt64, bytes UInt64, number UInt64, process UInt64, start UInt64, lease UInt64,
    image_segment UInt64, events_before UInt64, kept UInt64, `last` UInt64, program LowCardinality(String)
)
ENGINE = ReplacingMergeTree
ORDER BY (path, pass);

-- Rows of functions, each once.
CREATE VIEW IF NOT EXISTS $DATABASE.functions AS
SELECT * FROM $DATABASE.summaries WHERE kind = 'function' AND pass IN (SELECT pass FROM $DATABASE.loaded WHERE reason = '');

-- Times of functions by hour and node, for charts: what began and ended within a segment. Rows of an hour are made again when segments of it come.
CREATE TABLE IF NOT EXISTS $DATABASE.hours
(
    hour DateTime('UTC'), node LowCardinality(String), name LowCardinality(String), made DateTime64(9),
    calls UInt64, returned UInt64, exceptions UInt64, cut UInt64, lossy UInt64, total UInt64, self UInt64, min UInt64, max UInt64,
    bins Array(UInt16), counts Array(UInt64)
)
ENGINE = ReplacingMergeTree(made)
PARTITION BY toYYYYMM(hour)
ORDER BY (hour, node, name);

-- Each second: the objects that are not in `loaded`, each read as one row, so that one that is wrong is set aside alone.
DROP VIEW IF EXISTS $DATABASE.load;
CREATE MATERIALIZED VIEW $DATABASE.load
REFRESH EVERY 1 SECOND APPEND TO $DATABASE.summaries AS
SELECT path, pass, row, `rows`, inserted, minute,
    if(reason = '', `r.kind`, 'aside') AS kind, `r.node` AS node, `r.seg` AS seg, `r.version` AS version,
    `r.from` AS `from`, `r.to` AS `to`, `r.events` AS events, `r.lost` AS lost, `r.damaged` AS damaged, `r.bytes` AS bytes, `r.number` AS number,
    `r.process` AS process, `r.start` AS start, `r.lease` AS lease, `r.image_segment` AS image_segment, `r.events_before` AS events_before, `r.kept` AS kept,
    `r.last` AS `last`, `r.program` AS program,
    `r.id` AS id, if(reason = '', `r.name`, reason) AS name, `r.module` AS module, `r.function` AS function, `r.linkage` AS linkage,
    `r.calls` AS calls, `r.returned` AS returned, `r.exceptions` AS exceptions, `r.cut` AS cut, `r.lossy` AS lossy, `r.total` AS total, `r.self` AS self,
    `r.min` AS min, `r.max` AS max, `r.bins` AS bins, `r.counts` AS counts,
    `r.cause` AS cause, `r.thread` AS thread, `r.order` AS `order`, `r.exception` AS exception, `r.at` AS at, `r.own` AS own, `r.inner` AS inner,
    `r.within` AS within, `r.dropped` AS dropped, `r.ids` AS ids, `r.totals` AS totals,
    `r.label` AS label, `r.trace_id` AS trace_id, `r.first_serial` AS first_serial, `r.last_serial` AS last_serial, `r.sends` AS sends,
    `r.receives` AS receives, `r.prints` AS prints, `r.first` AS `first`, `r.left_out` AS left_out
FROM
(
    SELECT path, pass, row, `rows`, inserted, minute, reason, untuple(JSONExtract(text,
        'Tuple(kind String, node String, seg String, version UInt32,
            `from` UInt64, `to` UInt64, events UInt64, lost UInt64, damaged UInt64, bytes UInt64, number UInt64, process UInt64, start UInt64, lease UInt64,
            image_segment UInt64, events_before UInt64, kept UInt64, `last` UInt64, program String,
            id UInt32, name String, module String, function String, linkage String,
            calls UInt64, returned UInt64, exceptions UInt64, cut UInt64, lossy UInt64, total UInt64, self UInt64, min UInt64, max UInt64,
            bins Array(UInt16), counts Array(UInt64),
            cause String, thread String, `order` UInt32, exception Bool, at UInt64, own UInt64, inner UInt64, within UInt64,
            dropped UInt64, ids Array(UInt32), totals Array(UInt64),
            label String, trace_id String, first_serial Int64, last_serial Int64, sends UInt64, receives UInt64, prints UInt64, `first` UInt64, left_out UInt64)')) AS r
    FROM
    (
        SELECT path, rand64() AS pass, nowInBlock() AS inserted,
            multiIf(data = '', 'it is empty',
                NOT endsWith(data, '\n'), 'it was cut off',
                NOT arrayAll(x -> isValidJSON(x), lines), 'it is no summary',
                JSONExtractString(lines[1], 'kind') NOT IN ('segment', 'dropped') OR JSONExtractUInt(lines[1], 'version') != 1
                    OR NOT match(JSONExtractString(lines[1], 'seg'), '^[0-9a-f]{32}-[0-9a-f]{16}-[0-9]+-[0-9a-f]{16}$'),
                    'it is no summary, or one of another version',
                '') AS reason,
            if(reason = '', lines, ['{}']) AS texts, length(texts) AS `rows`,
            toStartOfMinute(toDateTime(if(reason = '', least(intDiv(JSONExtractUInt(lines[1], 'to'), 1000000000), 4294967295), 0), 'UTC')) AS minute
        FROM
        (
            SELECT _path AS path, data, arrayPopBack(splitByChar('\n', data)) AS lines
            FROM $OBJECTS
            WHERE _path NOT IN (SELECT path FROM $DATABASE.loaded)
        )
    )
    ARRAY JOIN texts AS text, arrayEnumerate(texts) AS row
)
SETTINGS max_partitions_per_insert_block = 0, min_insert_block_size_rows = 100000, max_insert_threads = 1;

-- Each second: objects whose rows are all there.
DROP VIEW IF EXISTS $DATABASE.mark;
CREATE MATERIALIZED VIEW $DATABASE.mark
REFRESH EVERY 1 SECOND APPEND TO $DATABASE.loaded AS
SELECT * FROM
(
    SELECT any(s.path) AS path, s.pass AS pass, now64(9) AS visible, anyIf(s.name, s.kind = 'aside') AS reason, any(s.minute) AS minute,
        anyIf(s.kind, s.row = 1) AS kind, anyIf(s.node, s.row = 1) AS node, anyIf(s.seg, s.row = 1) AS seg, anyIf(s.version, s.row = 1) AS version,
        anyIf(s.`from`, s.row = 1) AS `from`, anyIf(s.`to`, s.row = 1) AS `to`, anyIf(s.events, s.row = 1) AS events,
        anyIf(s.lost, s.row = 1) AS lost, anyIf(s.damaged, s.row = 1) AS damaged, anyIf(s.bytes, s.row = 1) AS bytes,
        anyIf(s.number, s.row = 1) AS number, anyIf(s.process, s.row = 1) AS process, anyIf(s.start, s.row = 1) AS start,
        anyIf(s.lease, s.row = 1) AS lease, anyIf(s.image_segment, s.row = 1) AS image_segment,
        anyIf(s.events_before, s.row = 1) AS events_before, anyIf(s.kept, s.row = 1) AS kept, anyIf(s.`last`, s.row = 1) AS `last`,
        anyIf(s.program, s.row = 1) AS program
    FROM $DATABASE.summaries AS s
    WHERE s.inserted > now() - INTERVAL 10 MINUTE AND s.pass NOT IN (SELECT pass FROM $DATABASE.loaded)
    GROUP BY s.pass
    HAVING count() = any(s.`rows`)
)
WHERE path NOT IN (SELECT path FROM $DATABASE.loaded)
LIMIT 1 BY path;

-- Each five minutes: hours that have ended, of which something became visible since they were made.
DROP VIEW IF EXISTS $DATABASE.roll;
CREATE MATERIALIZED VIEW $DATABASE.roll
REFRESH EVERY 5 MINUTE APPEND TO $DATABASE.hours AS
SELECT toStartOfHour(s.minute) AS hour, s.node AS node, s.name AS name, now64(9) AS made,
    sum(s.calls) AS calls, sum(s.returned) AS returned, sum(s.exceptions) AS exceptions, sum(s.cut) AS cut, sum(s.lossy) AS lossy,
    sum(s.total) AS total, sum(s.self) AS self, minIf(s.min, notEmpty(s.counts)) AS min, maxIf(s.max, notEmpty(s.counts)) AS max,
    mapKeys(mapSort(sumMap(mapFromArrays(s.bins, s.counts)) AS m)) AS bins, mapValues(mapSort(m)) AS counts
FROM $DATABASE.functions AS s
WHERE toStartOfHour(s.minute) IN
(
    SELECT seen.hour
    FROM (SELECT toStartOfHour(minute) AS hour, max(visible) AS last_visible FROM $DATABASE.loaded WHERE reason = '' GROUP BY hour) AS seen
    LEFT JOIN (SELECT hour, max(made) AS last_made FROM $DATABASE.hours GROUP BY hour) AS rolled ON seen.hour = rolled.hour
    WHERE seen.last_visible > rolled.last_made - INTERVAL 1 MINUTE AND seen.hour + INTERVAL 1 HOUR <= now()
)
GROUP BY hour, node, name
SETTINGS max_partitions_per_insert_block = 0;
