-- SPDX-License-Identifier: Apache-2.0
-- clickhouse_ask.sql - what `tracewheel fleet --clickhouse` asks (engine.c). Each answers lines of JSON as summaries have them, and a last one of kind `end`.
-- $SEGMENTS is a condition on rows of `loaded`, $MINUTES one that is true of all of these segments' rows in `summaries`.

-- @state
SELECT toJSONString(CAST((version(), count(), toUnixTimestamp64Nano(max(visible)),
    (SELECT any(exception) FROM system.view_refreshes WHERE database = currentDatabase() AND exception != '')),
    'Tuple(version String, loaded UInt64, visible UInt64, failure String)')) AS line
FROM loaded
FORMAT LineAsString

-- @nodes
SELECT line FROM
(
    SELECT DISTINCT 0 AS place, toJSONString(CAST(tuple(node), 'Tuple(name String)')) AS line FROM loaded WHERE reason = ''
    UNION ALL SELECT 1, '{"kind":"end"}'
)
ORDER BY place
FORMAT LineAsString

-- @names
SELECT line FROM
(
    SELECT DISTINCT 0 AS place, toJSONString(CAST(tuple(name), 'Tuple(name String)')) AS line
    FROM summaries
    WHERE kind = 'function' AND $MINUTES AND pass IN (SELECT pass FROM loaded WHERE $SEGMENTS)
    UNION ALL SELECT 1, '{"kind":"end"}'
)
ORDER BY place
FORMAT LineAsString

-- Functions of all segments, or of each node: their sums.
-- @functions
WITH chosen AS
    (SELECT pass FROM loaded WHERE $SEGMENTS ORDER BY path, visible, pass LIMIT 1 BY node, arrayPopBack(splitByChar('-', seg)))
SELECT line FROM
(
    SELECT 0 AS place, toJSONString(CAST(('function', node, -1, name, calls, returned, exceptions, cut, lossy, total, self, min, max, mapKeys(m), mapValues(m)),
        'Tuple(kind String, node String, id Int64, name String, calls UInt64, returned UInt64, exceptions UInt64, cut UInt64, lossy UInt64,
            total UInt64, self UInt64, min UInt64, max UInt64, bins Array(UInt16), counts Array(UInt64))')) AS line
    FROM
    (
        SELECT $NODE AS node, s.name AS name, sum(s.calls) AS calls, sum(s.returned) AS returned, sum(s.exceptions) AS exceptions, sum(s.cut) AS cut,
            sum(s.lossy) AS lossy, sum(s.total) AS total, sum(s.self) AS self,
            minIf(s.min, notEmpty(s.counts)) AS min, maxIf(s.max, notEmpty(s.counts)) AS max, sumMap(mapFromArrays(s.bins, s.counts)) AS m
        FROM summaries AS s
        WHERE s.kind = 'function' AND s.name != '' AND $MINUTES AND s.pass IN chosen
        GROUP BY node, name
    )
    UNION ALL SELECT 1, '{"kind":"end"}'
)
ORDER BY place
FORMAT LineAsString

-- The segments, each with its losses and what crosses its borders, ids being places in the first row's `names`; and of slowest, functions.
-- @segments
WITH chosen AS
    (SELECT pass FROM loaded WHERE $SEGMENTS ORDER BY path, visible, pass LIMIT 1 BY node, arrayPopBack(splitByChar('-', seg))),
(
    SELECT arraySort(groupUniqArray(name)) FROM summaries
    WHERE kind = 'function' AND name != '' AND $CROSSING AND $MINUTES
        AND (pass, id) IN (SELECT pass, id FROM summaries WHERE kind = 'open' AND $CROSSING AND $MINUTES AND pass IN chosen)
) AS names
SELECT line FROM
(
    SELECT '' AS path, toUInt64(0) AS pass, 0 AS row, 0 AS part, toJSONString(CAST(('names', names), 'Tuple(kind String, names Array(String))')) AS line
    UNION ALL
    SELECT path, pass, 0, 1, toJSONString(CAST((kind, node, seg, version, `from`, `to`, events, lost, damaged, bytes, number, process, start, lease, image_segment,
            events_before, kept, `last`, program, path),
        'Tuple(kind String, node String, seg String, version UInt32, `from` UInt64, `to` UInt64, events UInt64, lost UInt64, damaged UInt64, bytes UInt64,
            number UInt64, process UInt64, start UInt64, lease UInt64, image_segment UInt64, events_before UInt64, kept UInt64, `last` Bool,
            program String, path String)'))
    FROM loaded
    WHERE $SEGMENTS
    UNION ALL
    SELECT path, pass, 0, 2, toJSONString(CAST(('aside', path, reason), 'Tuple(kind String, path String, reason String)'))
    FROM loaded
    WHERE reason != '' AND (extract(path, $PATHS) = '' OR extract(path, $PATHS) >= $MINUTE)
    UNION ALL
    SELECT path, pass, row, 3, toJSONString(CAST(('lost', cause, events), 'Tuple(kind String, cause String, events UInt64)'))
    FROM summaries
    WHERE kind = 'lost' AND $MINUTES AND pass IN chosen
    UNION ALL
    SELECT path, pass, row, 3, toJSONString(CAST(('function', -1, name, calls, returned, exceptions, cut, lossy, total, self, min, max, bins, counts),
        'Tuple(kind String, id Int64, name String, calls UInt64, returned UInt64, exceptions UInt64, cut UInt64, lossy UInt64,
            total UInt64, self UInt64, min UInt64, max UInt64, bins Array(UInt16), counts Array(UInt64))'))
    FROM
    (
        SELECT * FROM summaries
        WHERE kind = 'function' AND name != '' AND notEmpty(counts) AND $FUNCTIONS AND $MINUTES AND pass IN chosen
        ORDER BY $COLUMN DESC, seg, name, node
        LIMIT $TOP
    )
    UNION ALL
    SELECT s.path, s.pass, s.row, 3, if(s.kind = 'thread',
        toJSONString(CAST((s.kind, s.thread, s.own, s.inner, s.`last`,
            arrayMap(x -> k.places[indexOf(k.numbers, x)], arrayFilter(x -> has(k.numbers, x), s.ids)),
            arrayFilter((t, x) -> has(k.numbers, x), s.totals, s.ids)),
            'Tuple(kind String, thread String, own UInt64, inner UInt64, `last` UInt64, ids Array(UInt32), totals Array(UInt64))')),
        toJSONString(CAST((s.kind, s.thread, if(has(k.numbers, s.id), toInt64(k.places[indexOf(k.numbers, s.id)]), -1),
            s.exception, s.at, s.own, s.inner, s.within),
            'Tuple(kind String, thread String, id Int64, exception Bool, at UInt64, own UInt64, inner UInt64, within UInt64)')))
    FROM (SELECT * FROM summaries WHERE kind IN ('return', 'thread', 'open') AND $CROSSING AND $MINUTES AND pass IN chosen) AS s
    LEFT JOIN
    (
        SELECT pass, groupArray(id) AS numbers, groupArray(transform(toString(name), arrayPushBack(names, ''), range(1, length(names) + 2), 0)) AS places
        FROM summaries
        WHERE kind = 'function' AND $CROSSING AND $MINUTES AND pass IN chosen AND name IN (SELECT arrayJoin(names))
        GROUP BY pass
    ) AS k ON s.pass = k.pass
    UNION ALL SELECT '', 0, 0, 9, '{"kind":"end"}'
)
ORDER BY part = 9, path, pass, part, row
SETTINGS join_use_nulls = 0
FORMAT LineAsString

-- The value below which a share of a function's times lies, by its bins: as columns.c has it.
-- @quantile
least(max, greatest(min, arrayMap(x -> if(x < 8, x, toUInt64(bitShiftRight(bitShiftLeft(toUInt64((8 + x % 8) * 2 + 1), toUInt8(intDiv(x, 8) - 1)), 1))),
    [toUInt64(bins[arrayFirstIndex(x -> x > toUInt64($SHARE * toFloat64(arraySum(counts))), arrayCumSum(counts))])])[1]))
