/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shop.c - a small server, and the subject of docs/questions.md.  It knows nothing of Tracewheel: it stands for a
 * program that somebody wrote, compiled as usual, in which something is slow.
 *
 *	cc -O1 -g -o shop shop.c -lpthread -l:libsqlite3.so.0
 *	./shop REQUESTS [slow|crash]
 *
 * Four workers answer requests that arrive on a socket: each reads its request, looks into a cache, and asks SQLite
 * for a third of them, or for all with `slow`.  A keeper cleans the cache from time to time, and holds its lock.  With
 * `crash` one more request follows when all are answered, and is answered through a bad pointer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of sqlite3.h, which needs a package of its own. */
struct sqlite3;
struct sqlite3_stmt;
int sqlite3_open(const char *name, struct sqlite3 **db);
int sqlite3_exec(struct sqlite3 *db, const char *sql, void *callback, void *context, char **error);
int sqlite3_prepare_v2(struct sqlite3 *db, const char *sql, int bytes, struct sqlite3_stmt **statement,
		       const char **tail);
int sqlite3_step(struct sqlite3_stmt *statement);
int sqlite3_finalize(struct sqlite3_stmt *statement);

enum { WORKERS = 4, MOST = 10000, ROW = 100 };

struct request {
	int number, fd;
};

static struct sqlite3 *db;
static struct request queue[MOST];
static int queued, taken;
static bool is_over, is_slow;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER, cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t db_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_queued = PTHREAD_COND_INITIALIZER;

int read_config(void)
{
	char line[16];
	int lines = 0, fd = open("/etc/services", O_RDONLY);

	if (fd < 0)
		return -1;
	while (read(fd, line, sizeof line) > 0)
		lines++;
	close(fd);
	return lines;
}

int load_plugins(void)
{
	int plugins = 0;

	while (plugins < 3 && usleep(10000) == 0)
		plugins++;
	return plugins;
}

int open_db(void)
{
	if (sqlite3_open(":memory:", &db))
		return -1;
	return sqlite3_exec(db,
			    "CREATE TABLE trip (km INTEGER, city INTEGER);"
			    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
			    "	INSERT INTO trip SELECT i, i % 97 FROM n",
			    NULL, NULL, NULL);
}

int start(void)
{
	return read_config() + load_plugins() + open_db();
}

int parse(const struct request *request)
{
	char text[64];

	return (int)read(request->fd, text, sizeof text);
}

int cache_get(int number)
{
	pthread_mutex_lock(&cache_lock);
	usleep(200);
	pthread_mutex_unlock(&cache_lock);
	return number % 3;
}

int query(const char *sql)
{
	struct sqlite3_stmt *statement;
	int rows = 0;

	sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
	while (sqlite3_step(statement) == ROW)
		rows++;
	sqlite3_finalize(statement);
	return rows;
}

int reply(const struct request *request, char *page, int value)
{
	int bytes = sprintf(page, "%d\n", value);

	return (int)write(request->fd, page, (size_t)bytes);
}

void handle(const struct request *request)
{
	char sql[100], *page;
	int value;

	parse(request);
	value = cache_get(request->number);
	if (value == 0 || is_slow) {
		/* One request in 200 joins the table with itself, and there is no index. */
		snprintf(sql, sizeof sql,
			 request->number % 200 == 7
				 ? "SELECT count(*) FROM trip x, trip y WHERE x.city < y.km AND x.km < %d"
				 : "SELECT count(*) FROM trip WHERE km = %d",
			 request->number);
		pthread_mutex_lock(&db_lock);
		query(sql);
		pthread_mutex_unlock(&db_lock);
	}
	page = malloc(request->number % 10 == 3 ? 2000000 : 500);
	reply(request, request->number < 0 ? (char *)8 : page, value);
	if (request->number % 4)
		free(page);
}

static void *worker(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		struct request request;

		pthread_mutex_lock(&queue_lock);
		while (taken == queued && !is_over)
			pthread_cond_wait(&is_queued, &queue_lock);
		if (taken == queued) {
			pthread_mutex_unlock(&queue_lock);
			return NULL;
		}
		request = queue[taken++];
		pthread_mutex_unlock(&queue_lock);
		handle(&request);
	}
}

void clean_cache(int entries)
{
	pthread_mutex_lock(&cache_lock);
	while (entries-- > 0)
		usleep(10000);
	pthread_mutex_unlock(&cache_lock);
}

static void *keeper(void *name)
{
	pthread_setname_np(pthread_self(), name);
	/* The second time there is much to do. */
	for (int round = 1; !is_over; round++) {
		usleep(100000);
		clean_cache(round == 2 ? 90 : 1);
	}
	return NULL;
}

static int read_answers(int from, int flags)
{
	char text[256];
	ssize_t bytes = recv(from, text, sizeof text, flags);
	int lines = 0;

	for (ssize_t i = 0; i < bytes; i++)
		lines += text[i] == '\n';
	return lines;
}

static int accept_request(int number, int from, int to)
{
	char text[64] = "GET /";

	if (write(from, text, sizeof text) != sizeof text)
		exit(1);
	pthread_mutex_lock(&queue_lock);
	queue[queued++] = (struct request){number, to};
	pthread_cond_signal(&is_queued);
	pthread_mutex_unlock(&queue_lock);
	usleep(1000);
	return read_answers(from, MSG_DONTWAIT);
}

int main(int count, char **arguments)
{
	int requests = count > 1 ? atoi(arguments[1]) : 0, answered = 0, sockets[2];
	const char *mode = count > 2 ? arguments[2] : "";
	static char names[WORKERS + 1][16] = {"worker-0", "worker-1", "worker-2", "worker-3", "keeper"};
	pthread_t threads[WORKERS + 1];

	if (requests < 1 || requests >= MOST || start() < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	is_slow = strcmp(mode, "slow") == 0;
	for (int i = 0; i <= WORKERS; i++)
		pthread_create(&threads[i], NULL, i < WORKERS ? worker : keeper, names[i]);
	for (int i = 0; i < requests; i++)
		answered += accept_request(i, sockets[0], sockets[1]);
	while (answered < requests)
		answered += read_answers(sockets[0], 0);
	if (strcmp(mode, "crash") == 0)
		accept_request(-1, sockets[0], sockets[1]);
	pthread_mutex_lock(&queue_lock);
	is_over = true;
	pthread_cond_broadcast(&is_queued);
	pthread_mutex_unlock(&queue_lock);
	for (int i = 0; i <= WORKERS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
