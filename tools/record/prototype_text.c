/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prototype_text.c - reads one prototype: errno long read(fd fd, out buf(len=result) buf, size count)
 *
 *	prototype = [["errno"] type] name *("," name) "(" [argument *("," argument)] ")"
 *	argument  = "_" | "..." | ["out"] type [name ["[" count "]"]]
 *	type      = word ["(" options ")"]
 */
#include "tools/record/prototypes.h"
#include "tools/tool.h"

#include "tracewheel/layout.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 64

struct type {
	const char *word;
	char letter;
	unsigned bytes;
	const char *braces; /* of its layout */
};

static const struct type types[] =
	{{"bool", 'b', 1, NULL},   {"char", 'i', 1, NULL},  {"uchar", 'u', 1, NULL},	     {"short", 'i', 2, NULL},
	 {"ushort", 'u', 2, NULL}, {"int", 'i', 4, NULL},   {"uint", 'u', 4, NULL},	     {"long", 'i', 8, NULL},
	 {"ulong", 'u', 8, NULL},  {"size", 'u', 8, NULL},  {"ssize", 'i', 8, NULL},	     {"float", 'f', 4, NULL},
	 {"double", 'f', 8, NULL}, {"ptr", 'p', 8, NULL},   {"str", 's', 8, NULL},	     {"hex", 'x', 8, NULL},
	 {"octal", 'o', 4, NULL},  {"error", 'E', 4, NULL}, {"fd", 'n', 4, "AT_FDCWD=-100"}, {"enum", 'n', 4, NULL},
	 {"flags", 'g', 4, NULL},  {"buf", 'm', 8, NULL},   {"sockaddr", 'm', 8, NULL},	     {"void", 'v', 0, NULL}};

/* Words that people try, and what they are here. */
static const struct {
	const char *word, *instead;
} hints[] = {{"unsigned", "uint, ulong or uchar"},
	     {"signed", "int or long"},
	     {"const", "the type without const"},
	     {"struct", "ptr"},
	     {"size_t", "size"},
	     {"ssize_t", "ssize"},
	     {"off_t", "long"},
	     {"mode_t", "octal"},
	     {"string", "str"},
	     {"pointer", "ptr"},
	     {"FILE", "ptr"},
	     {"uint64_t", "ulong"},
	     {"int64_t", "long"},
	     {"uint32_t", "uint"},
	     {"int32_t", "int"}};

struct argument {
	char name[NAME_BYTES];
	char options[256];
	const struct type *type; /* NULL: skipped */
	bool is_out;
	unsigned count; /* of numbers that the call fills */
	int number;	/* of the register; -1: none */
};

struct reading {
	const struct tw_prototype_source *source;
	char *copy, *names;
	struct argument result; /* without a type: a word */
	bool has_errno, is_variadic;
	struct argument arguments[TW_LAYOUT_VALUES_MAX];
	unsigned count;
	char *reason;
	char layout[TW_LAYOUT_TEXT_BYTES_MAX];
	size_t bytes;
};

static bool refuse(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(struct reading *r, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(r->reason, TW_PROTOTYPE_REASON_BYTES, format, list);
	va_end(list);
	return false;
}

static char *trim(char *text)
{
	text += strspn(text, " \t");
	for (size_t bytes = strlen(text); bytes && isspace((unsigned char)text[bytes - 1]);)
		text[--bytes] = 0;
	return text;
}

/* Letters, digits and _, which layouts can hold. */
static bool is_name(const char *text)
{
	size_t bytes = 0;
	while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_')
		bytes++;
	return bytes && !text[bytes] && bytes < NAME_BYTES && !isdigit((unsigned char)*text);
}

/* ---- reading ---- */

static const struct type *type_named(struct reading *r, const char *word)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].word, word) == 0)
			return &types[i];
	for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
		if (strcmp(hints[i].word, word) == 0) {
			refuse(r, "'%.40s' is not a type here: say %s", word, hints[i].instead);
			return NULL;
		}
	}
	refuse(r,
	       strchr(word, '*')
		       ? "'%.40s': types are single words: str for char *, ptr for another pointer"
		       : "'%.40s' is not a type: int, uint, long, ulong, size, bool, double, ptr, str, "
			 "buf(len=ARGUMENT), flags(TABLE), enum(TABLE), fd, octal, hex, sockaddr(len=ARGUMENT), or _ for none",
	       word);
	return NULL;
}

/* Splits TYPE [(OPTIONS)] [NAME]; the text is cut in pieces. */
static bool take_type(struct reading *r, char *text, struct argument *out)
{
	char *end = text + strcspn(text, " \t("), *rest = end + strspn(end, " \t");
	if (*rest == '(') {
		char *close = strchr(rest, ')');
		if (!close)
			return refuse(r, "'%.80s': a parenthesis is not closed", text);
		*close = 0;
		if (strlen(rest + 1) >= sizeof out->options)
			return refuse(r, "'%.40s...' is too long", rest + 1);
		strcpy(out->options, trim(rest + 1));
		rest = close + 1;
	}
	*end = 0;
	rest = trim(rest);
	out->type = type_named(r, text);
	if (!out->type)
		return false;
	char *bracket = strchr(rest, '[');
	if (bracket) {
		uint64_t count;
		char *close = strchr(bracket, ']');
		if (close)
			*close = 0;
		*bracket = 0;
		if (!close || close[1] || !out->is_out || !tw_parse_count(bracket + 1, &count) || !count || count > 32)
			return refuse(
				r,
				"'%.40s[...]': only numbers that the call fills have a count, from 1 to 32: out int "
				"fds[2]",
				rest);
		out->count = (unsigned)count;
		rest = trim(rest);
	}
	if (*rest && !is_name(rest))
		return refuse(r, "'%.80s' is no name of an argument%s", rest,
			      strchr(rest, '*') ? ": types are single words, str for char *, ptr for another pointer"
						: "");
	strcpy(out->name, rest);
	return true;
}

static bool take_argument(struct reading *r, char *text)
{
	struct argument *argument = &r->arguments[r->count];
	if (r->is_variadic)
		return refuse(r, "'...' comes last");
	if (strcmp(text, "...") == 0) {
		r->is_variadic = true;
		return true;
	}
	if (!*text)
		return refuse(r, "an argument is empty; _ skips one");
	if (r->count == TW_LAYOUT_VALUES_MAX)
		return refuse(r, "it has more than %d arguments", TW_LAYOUT_VALUES_MAX);
	*argument = (struct argument){.count = 1, .number = -1};
	r->count++;
	if (strcmp(text, "_") == 0)
		return true;
	if (strncmp(text, "out", 3) == 0 && isspace((unsigned char)text[3])) {
		argument->is_out = true;
		text = trim(text + 3);
	}
	if (!take_type(r, text, argument))
		return false;
	if (argument->type->letter == 'v' || argument->type->letter == 'E')
		return refuse(r, "'%s' is only the type of a result", argument->type->word);
	if (argument->is_out && !strchr("iupxsm", argument->type->letter))
		return refuse(r, "'out %s': a call fills buf, str, ptr, hex and whole numbers", argument->type->word);
	return true;
}

/* Between the parentheses; those of options do not end an argument. */
static bool take_arguments(struct reading *r, char *text)
{
	unsigned depth = 0;
	char *from = text;
	text = trim(text);
	if (!*text || strcmp(text, "void") == 0)
		return true;
	for (char *at = from = text;; at++) {
		depth += *at == '(';
		depth -= *at == ')' && depth;
		if (*at && (*at != ',' || depth))
			continue;
		bool is_last = !*at;
		*at = 0;
		if (!take_argument(r, trim(from)))
			return false;
		if (is_last)
			return true;
		from = at + 1;
	}
}

/* The part before the arguments: [["errno"] type] names. */
static bool take_head(struct reading *r, char *text)
{
	text = trim(text);
	char *names = strrchr(text, ' ');
	char *tab = strrchr(text, '\t');
	names = tab > names ? tab : names;
	r->names = names ? names + 1 : text;
	if (!*r->names || strpbrk(r->names, "*&;()"))
		return refuse(r, "'%.80s' is no name of a function%s", r->names,
			      strchr(r->names, '*')
				      ? ": types are single words, str for char *, ptr for another pointer"
				      : "");
	if (!names)
		return true;
	*names = 0;
	text = trim(text);
	if (strncmp(text, "errno", 5) == 0 && isspace((unsigned char)text[5])) {
		r->has_errno = true;
		text = trim(text + 5);
	}
	if (!take_type(r, text, &r->result))
		return false;
	if (r->result.name[0])
		return refuse(r, "'%.40s %.40s': the result is one word before the function's name", text,
			      r->result.name);
	if (r->result.type->letter == 'm')
		return refuse(r, "a result is no buf: say ptr, or str");
	if (r->has_errno && !strchr("iupxsn", r->result.type->letter))
		return refuse(r, "errno goes with whole numbers, ptr and str");
	return true;
}

/* ---- writing ---- */

static bool put(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool put(struct reading *r, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int bytes = vsnprintf(r->layout + r->bytes, sizeof r->layout - 100 - r->bytes, format, list);
	va_end(list);
	if (bytes < 0 || (size_t)bytes >= sizeof r->layout - 100 - r->bytes)
		return refuse(r, "it is too long");
	r->bytes += (size_t)bytes;
	return true;
}

/* By name, or by number from 1: $2.  -1: there is none. */
static int argument_named(const struct reading *r, const char *name)
{
	if (*name == '$') {
		uint64_t number;
		return tw_parse_count(name + 1, &number) && number && number <= r->count ? (int)number - 1 : -1;
	}
	for (unsigned i = 0; i < r->count; i++)
		if (*name && strcmp(r->arguments[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* One factor of a length. */
static bool put_factor(struct reading *r, const struct argument *argument, char *text)
{
	bool is_pointer = *text == '*';
	uint64_t number;
	if (!is_pointer && tw_parse_count(text, &number) && number <= UINT32_MAX)
		return put(r, "n=%u", (unsigned)number);
	if (strcmp(text, "result") == 0)
		return argument->is_out
			       ? put(r, "r=1")
			       : refuse(r, "len=result: the result is known after the call: say out buf(len=result)");
	int index = argument_named(r, text + is_pointer);
	if (index < 0)
		return refuse(r, "len=%.40s: the function has no such argument", text);
	const struct argument *other = &r->arguments[index];
	if (other->number < 0 || other->number > 5)
		return refuse(r, "len=%.40s: that argument is not in an integer register", text);
	if (!is_pointer)
		return put(r, "a%d=1", index);
	if (!other->is_out || !strchr("iux", other->type->letter) || other->type->bytes < 4)
		return refuse(r, "len=%.40s: that argument is not declared as a number that the call fills", text);
	return put(r, "%c%d=1", other->type->bytes == 4 ? 'p' : 'q', index);
}

/* len=size, len=result*size */
static bool put_length(struct reading *r, struct argument *argument)
{
	char *text = argument->options, *times;
	if (strncmp(text, "len", 3) != 0 || *(text = trim(text + 3)) != '=')
		return refuse(r, "%s needs its length in bytes: buf(len=ARGUMENT), out buf(len=result)",
			      argument->type->word);
	text = trim(text + 1);
	/* Not the one that says where a number is. */
	times = strchr(text + (*text == '*'), '*');
	if (times)
		*times++ = 0;
	return put(r, "{") && put_factor(r, argument, trim(text)) &&
	       (!times || (put(r, ",") && put_factor(r, argument, trim(times)))) && put(r, "}");
}

/* octal(flags&0100): shown only with that bit. */
static bool put_condition(struct reading *r, struct argument *argument)
{
	char *mask = strchr(argument->options, '&'), *end;
	if (!mask)
		return refuse(r, "octal(%.40s): a condition is octal(ARGUMENT&BITS)", argument->options);
	*mask++ = 0;
	int index = argument_named(r, trim(argument->options));
	unsigned long bits = strtoul(trim(mask), &end, 0);
	if (index < 0 || r->arguments[index].number < 0 || *end || !bits)
		return refuse(r, "octal(%.40s&%.40s): a condition is octal(ARGUMENT&BITS)", argument->options, mask);
	return put(r, "{%d=%lu}", index, bits);
}

static bool put_braces(struct reading *r, struct argument *argument)
{
	const struct type *type = argument->type;
	if (type->letter == 'm')
		return put_length(r, argument);
	if (argument->is_out && type->letter != 's')
		return put(r, "{%c%u=%u}", type->letter, type->bytes, argument->count);
	if (type->letter == 'o' && argument->options[0])
		return put_condition(r, argument);
	bool has_table = type->letter == 'g' || (type->letter == 'n' && !type->braces);
	if (!has_table && argument->options[0])
		return refuse(r, "'%s' has no options", type->word);
	if (!has_table)
		return !type->braces || put(r, "{%s}", type->braces);
	const struct tw_prototype_table *table =
		argument->options[0] ? r->source->find_table(argument->options, r->source->arg) : NULL;
	if (!table)
		return refuse(r, "%s(%.40s): there is no such table of names", type->word, argument->options);
	return put(r, "{%s}", table->text);
}

static char letter_of(const struct argument *argument)
{
	char letter = argument->type->letter;
	if (!argument->is_out)
		return letter;
	return letter == 'm' ? 'M' : letter == 's' ? 'Z' : 'V';
}

static bool put_argument(struct reading *r, struct argument *argument)
{
	static const char digits[] = "0123456789abcdef";
	if (!argument->type)
		return put(r, " :_8@--");
	unsigned bytes = argument->is_out ? 8 : argument->type->bytes;
	bool has_form = strcmp(argument->type->word, "sockaddr") == 0;
	if (!put(r, " %s:%c%u%s", argument->name, letter_of(argument), bytes, has_form ? "/sockaddr" : "") ||
	    !put_braces(r, argument))
		return false;
	return put(r, "@%c-", argument->number < 0 ? '-' : digits[argument->number]);
}

static bool put_result(struct reading *r)
{
	const struct type *type = r->result.type;
	if (!type)
		return put(r, ":i8@6-");
	if (type->letter == 'v')
		return put(r, ":v0@--");
	/* A descriptor that was returned is a number. */
	char letter = type->letter == 's' ? 'Z' : type->braces ? 'i' : type->letter;
	if (!put(r, ":%c%u", letter, type->bytes))
		return false;
	if (r->has_errno)
		return put(r, "{errno=1}@6-");
	return (type->braces || put_braces(r, &r->result)) && put(r, "@%c-", letter == 'f' ? '8' : '6');
}

/* As the System V ABI passes them; a skipped one is an integer or a pointer. */
static bool give_registers(struct reading *r)
{
	int integers = 0, vectors = 0;
	unsigned read = 0, filled = r->result.type && r->result.type->letter == 's';
	for (unsigned i = 0; i < r->count; i++) {
		struct argument *argument = &r->arguments[i];
		bool is_vector = argument->type && argument->type->letter == 'f';
		int number = is_vector ? (vectors < 8 ? 8 + vectors : -1) : (integers < 6 ? integers : -1);
		vectors += is_vector;
		integers += !is_vector;
		argument->number = number;
		if (number < 0 || !argument->type)
			continue;
		filled += argument->is_out;
		read += !argument->is_out && strchr("sm", argument->type->letter);
	}
	if (read > 6 || filled > 6)
		return refuse(r, "it has more than six strings and buffers");
	if (filled && r->result.type && r->result.type->letter == 'f')
		return refuse(r, "out does not go with a result of type %s", r->result.type->word);
	return true;
}

/* The parenthesis before the arguments; the result may have one, too: enum(table) f(int). */
static char *arguments_of(char *text)
{
	char *open = strchr(text, '('), *word = open;
	while (word && word > text && isalpha((unsigned char)word[-1]))
		word--;
	bool has_table = open && (strncmp(word, "enum(", 5) == 0 || strncmp(word, "flags(", 6) == 0) &&
			 (word == text || isspace((unsigned char)word[-1]));
	char *close = has_table ? strchr(open, ')') : NULL;
	return close && strchr(close, '(') ? strchr(close, '(') : open;
}

static bool read_prototype(struct reading *r)
{
	char *open = arguments_of(r->copy), *close = strrchr(r->copy, ')');
	if (!open || !close || close < open)
		return refuse(r, "'%.80s' is no prototype: [RESULT] FUNCTION(TYPE [NAME], ...)", r->copy);
	if (close[1 + strspn(close + 1, " \t;")])
		return refuse(r, "'%.80s' stands behind the prototype", trim(close + 1));
	*open++ = *close = 0;
	if (!take_head(r, r->copy) || !take_arguments(r, open) || !give_registers(r) || !put_result(r))
		return false;
	for (unsigned i = 0; i < r->count; i++)
		if (!put_argument(r, &r->arguments[i]))
			return false;
	return !r->is_variadic || put(r, " ...");
}

bool tw_prototype_read(const struct tw_prototype_source *source, char **names, char **layout,
		       char reason[TW_PROTOTYPE_REASON_BYTES])
{
	struct reading *r = calloc(1, sizeof *r);
	struct tw_layout *parsed = NULL;
	bool is_right = false;
	strcpy(reason, "there is no memory");
	if (r) {
		r->source = source;
		r->copy = strdup(source->text);
		r->reason = reason;
		is_right = r->copy && read_prototype(r);
	}
	/* The form that readers and programs will make of it. */
	if (is_right && tw_layout_parse(r->layout, r->bytes, &parsed) != 0)
		is_right = refuse(r, "it is too large");
	tw_layout_destroy(parsed);
	if (is_right) {
		*names = strdup(r->names);
		*layout = strdup(r->layout);
		is_right = *names && *layout;
	}
	if (r)
		free(r->copy);
	free(r);
	return is_right;
}

/* NAME=VALUE[/MASK], in C's numbers, as NAME[.MASK]=VALUE in decimal ones. */
static bool put_entry(FILE *out, const char *between, char *entry)
{
	char *value = strchr(entry, '='), *mask, *end;
	if (!value)
		return false;
	*value++ = 0;
	mask = strchr(value, '/');
	if (mask)
		*mask++ = 0;
	long long number = strtoll(value, &end, 0), bits = 0;
	if (!is_name(entry) || !*value || *end)
		return false;
	if (mask)
		bits = strtoll(mask, &end, 0);
	if (mask && (!*mask || *end || bits <= 0))
		return false;
	if (mask)
		fprintf(out, "%s%s.%lld=%lld", between, entry, bits, number);
	else
		fprintf(out, "%s%s=%lld", between, entry, number);
	return true;
}

bool tw_prototype_table_read(const char *text, struct tw_prototype_table *out, char reason[TW_PROTOTYPE_REASON_BYTES])
{
	char *copy = strdup(text), *rest = copy, *made = NULL, *entry;
	const char *name = NULL, *between = "";
	size_t bytes = 0;
	FILE *stream = copy ? open_memstream(&made, &bytes) : NULL;
	bool is_right = stream != NULL;
	snprintf(reason, TW_PROTOTYPE_REASON_BYTES, "there is no memory");
	while (is_right && (entry = strsep(&rest, " \t"))) {
		if (!*entry)
			continue;
		if (!name) {
			name = entry;
			is_right = is_name(name);
		} else {
			is_right = put_entry(stream, between, entry);
			between = ",";
		}
		if (!is_right)
			snprintf(reason, TW_PROTOTYPE_REASON_BYTES,
				 "'%.80s': a table is NAME, and then NAME=VALUE or NAME=VALUE/MASK", entry);
	}
	if (stream)
		fclose(stream);
	if (is_right && !*between) {
		is_right = false;
		snprintf(reason, TW_PROTOTYPE_REASON_BYTES, "the table is empty");
	}
	if (is_right)
		*out = (struct tw_prototype_table){strdup(name), made};
	else
		free(made);
	free(copy);
	return is_right;
}
