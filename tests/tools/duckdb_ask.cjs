// SPDX-License-Identifier: Apache-2.0
// duckdb_ask.cjs MODULES STATEMENTS QUESTION - DuckDB as a library (npm's @duckdb/node-api): the question's rows, tabs between columns. For tests.
const { readFileSync } = require("fs");
const { DuckDBInstance } = require(process.argv[2] + "/@duckdb/node-api");

async function main() {
	const instance = await DuckDBInstance.create(":memory:");
	const connection = await instance.connect();
	await connection.run(readFileSync(process.argv[3], "utf8"));
	const rows = await connection.runAndReadAll(process.argv[4]);
	for (const row of rows.getRowsJson())
		console.log(row.join("\t"));
}

main().catch((error) => {
	console.error(String(error));
	process.exit(1);
});
