/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - prints and parses numbers with units. */
#include "views/output/output.h"
#include "base/figure.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tw_figure_count(char *text, uint64_t count)
{
	return tw_count_text(text, count);
}

const char *tw_figure_of(char *text, uint64_t count, const char *one, const char *more)
{
	size_t bytes = strlen(tw_figure_count(text, count));
	snprintf(text + bytes, TW_FIGURE_BYTES - bytes, " %s", count == 1 ? one : more);
	return text;
}

/* Limits are those of rounding to three digits: 999.6 k is 1 M. */
const char *tw_figure_short(char *text, double value)
{
	static const struct {
		double from, divisor;
		const char *unit;
	} scale[] = {{999.5e9, 1e12, " T"}, {999.5e6, 1e9, " G"}, {999.5e3, 1e6, " M"}, {9999.5, 1e3, " k"}};
	for (size_t i = 0; i < sizeof scale / sizeof *scale; i++) {
		if (value >= scale[i].from) {
			snprintf(text, TW_FIGURE_BYTES, "%.3g%s", value / scale[i].divisor, scale[i].unit);
			return text;
		}
	}
	if (value >= 99.95)
		return tw_figure_count(text, (uint64_t)(value + 0.5));
	snprintf(text, TW_FIGURE_BYTES, "%.3g", value);
	return text;
}

const char *tw_figure_bytes(char *text, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double value = (double)bytes;
	size_t unit = 0;
	while (value >= 999.5 && unit + 1 < sizeof units / sizeof *units) {
		value /= 1024;
		unit++;
	}
	snprintf(text, TW_FIGURE_BYTES,
		 unit && value < 9.995	 ? "%.2f %s"
		 : unit && value < 99.95 ? "%.1f %s"
					 : "%.0f %s",
		 value, units[unit]);
	return text;
}

const char *tw_figure_seconds(char *text, double seconds)
{
	static const struct {
		double unit;
		const char *name;
	} scale[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
	unsigned long long whole = (unsigned long long)(seconds + 0.5);
	size_t i = 0;
	if (seconds >= 119.5) {
		snprintf(text, TW_FIGURE_BYTES, "%llu min %02llu s", whole / 60, whole % 60);
		return text;
	}
	while (i < 3 && seconds < 0.9995 * scale[i].unit)
		i++;
	snprintf(text, TW_FIGURE_BYTES, "%.3g %s", seconds / scale[i].unit, scale[i].name);
	return text;
}

const char *tw_figure_duration(char *text, uint64_t ns)
{
	static const struct {
		double from, unit;
		const char *name;
	} scale[] = {{999.5e6, 1e9, "s"}, {999.5e3, 1e6, "ms"}, {999.5, 1e3, "us"}, {0, 1, "ns"}};
	size_t i = 0;
	while ((double)ns < scale[i].from)
		i++;
	double value = (double)ns / scale[i].unit;
	snprintf(text, TW_FIGURE_BYTES,
		 scale[i].unit == 1 || value >= 99.95 ? "%.0f %s"
		 : value >= 9.995		      ? "%.1f %s"
						      : "%.2f %s",
		 value, scale[i].name);
	return text;
}

const char *tw_figure_moment(char *text, uint64_t ns)
{
	snprintf(text, TW_FIGURE_BYTES, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
		 (unsigned long long)(ns % 1000000000));
	return text;
}

/* Parses an unsigned decimal number; *rest is the text after it. */
static bool parse_number(const char *text, double *value, const char **rest)
{
	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	char *end;
	errno = 0;
	*value = strtod(text, &end);
	*rest = end;
	return end != text && errno == 0 && *value >= 0 && text[strspn(text, "0123456789.")] != 'x';
}

bool tw_parse_bytes(const char *text, uint64_t *out)
{
	double value;
	const char *unit;
	if (!parse_number(text, &value, &unit))
		return false;
	static const char letters[] = "kmgt";
	double factor = 1;
	const char *letter = *unit ? strchr(letters, tolower((unsigned char)*unit)) : NULL;
	if (letter) {
		for (const char *l = letters; l <= letter; l++)
			factor *= 1024;
		unit++;
		if (*unit == 'i')
			unit++;
	}
	if (*unit == 'B' || *unit == 'b')
		unit++;
	if (*unit || value * factor >= 9e18)
		return false;
	*out = (uint64_t)(value * factor);
	return true;
}

bool tw_parse_duration(const char *text, uint64_t *out_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 6e10}, {"h", 3.6e12}};
	double value;
	const char *unit;
	if (!parse_number(text, &value, &unit))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(unit, units[i].name) == 0 && value * units[i].ns < 9e18) {
			*out_ns = (uint64_t)(value * units[i].ns + 0.5);
			return true;
		}
	}
	return false;
}

bool tw_parse_count(const char *text, uint64_t *out)
{
	if (!isdigit((unsigned char)*text))
		return false;
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end)
		return false;
	*out = value;
	return true;
}

/* "250" or "250ms": in milliseconds without a unit. */
bool tw_parse_milliseconds(const char *text, uint64_t *out_ns)
{
	uint64_t count;
	if (tw_parse_count(text, &count) && count < UINT64_C(1) << 40) {
		*out_ns = count * 1000000;
		return true;
	}
	return tw_parse_duration(text, out_ns);
}

bool tw_parse_decimal(const char *text, bool is_rate, uint64_t *out)
{
	char digits[32];
	uint64_t factor = 1, number;
	size_t count = strspn(text, "0123456789");
	const char *rest = text + count;
	if (!count || count >= sizeof digits)
		return false;
	memcpy(digits, text, count);
	digits[count] = 0;
	if (*rest == 'k' || *rest == 'K')
		factor = 1000, rest++;
	else if (*rest == 'M')
		factor = 1000000, rest++;
	else if (*rest == 'G')
		factor = 1000000000, rest++;
	if (is_rate && strcmp(rest, "/s") == 0)
		rest += 2;
	if (*rest || !tw_parse_count(digits, &number) || !number || number > UINT64_MAX / factor)
		return false;
	*out = number * factor;
	return true;
}
