// SPDX-License-Identifier: Apache-2.0
// chdb_server.cjs MODULES FOLDER - ClickHouse as a library (npm's chdb) behind the part of its HTTP interface that tracewheel-fleet uses, on loopback:
// POST with a statement, ?database=. It prints its port. For tests.
const http = require("http");
const { Session } = require(process.argv[2] + "/chdb");
const session = new Session(process.argv[3]);

function answer(statement, database) {
	if (database)
		session.query("USE `" + database + "`");
	return session.query(statement, "TabSeparated");
}

const server = http.createServer((request, response) => {
	const parts = [];
	request.on("data", (part) => parts.push(part));
	request.on("end", () => {
		const asked = new URL(request.url, "http://localhost").searchParams;
		try {
			const text = answer(Buffer.concat(parts).toString(), asked.get("database"));
			response.writeHead(200, { "Content-Type": "text/plain" });
			response.end(text);
		} catch (error) {
			response.writeHead(500, { "Content-Type": "text/plain" });
			response.end(String(error.message || error) + "\n");
		}
	});
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
