/* SPDX-License-Identifier: Apache-2.0 */
/* bank.c - accounts that crash, and supervisors that are linked to them and restart them. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>

#define CRASH_EVERY 50

/* withdraw(Balance, Amount): an amount above the balance is an error. */
static struct value withdraw(struct actor *self, const struct value *arguments)
{
	int64_t left = number_of(arguments[0]) - number_of(arguments[1]);
	if (left < 0)
		raise_error(self, atom("insufficient_funds"));
	return integer(left);
}
static struct function withdraw_function = LOCAL_FUNCTION("bank", "withdraw", 2, withdraw);

static struct function account_function;
/* account(Balance): answers {Pid, Amount} with the new balance. */
static struct value account(struct actor *self, const struct value *arguments)
{
	struct value request = receive(self);
	KEEP(self, request);
	struct value balance = call(self, &withdraw_function, arguments[0], element(request, 1));
	send_to(self, element(request, 0), TUPLE(heap_of(self), self_pid(self), balance));
	return tail_call(self, &account_function, balance);
}
static struct function account_function = FUNCTION("bank", "account", 1, account);

/* An answer of the account, or its end. */
static bool is_of(struct value message, struct value pid)
{
	return is_same(element(message, 0), pid) ||
	       (is_tagged(message, ATOM(EXIT), 3) && is_same(element(message, 1), pid));
}

/* supervisor(Collector, Requests): one account; every CRASH_EVERY-th request exceeds its balance. */
static struct value supervisor(struct actor *self, const struct value *arguments)
{
	int64_t requests = number_of(arguments[1]), made = 0, restarts = 0, wrong = 0;
	struct value account = spawn_link(self, &account_function, integer(1000));
	process_flag(self, FLAG_TRAP_EXIT, true);
	for (; made < requests && !is_time_over(); made++) {
		bool is_too_much = made % CRASH_EVERY == CRASH_EVERY - 1;
		send_to(self, account, TUPLE(heap_of(self), self_pid(self), integer(is_too_much ? 5000 : 1)));
		struct value answer = receive_match(self, is_of, account, FOREVER);
		bool has_crashed = is_tagged(answer, ATOM(EXIT), 3);
		wrong += has_crashed != is_too_much;
		if (has_crashed) {
			wrong += !is_same(element(element(answer, 2), 0), atom("insufficient_funds"));
			account = spawn_link(self, &account_function, integer(1000));
			restarts++;
		}
	}
	wrong += restarts != made / CRASH_EVERY;
	send_to(self, arguments[0], TUPLE(heap_of(self), ATOM(OK), integer(wrong ? -1 : made)));
	return ATOM(OK);
}
static struct function supervisor_function = FUNCTION("bank", "supervisor", 2, supervisor);

static void declare(void)
{
	module_load((struct function *const[]){&withdraw_function, &account_function, &supervisor_function}, 3);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t requests = options->messages / 2 / options->actors, made = 0;
	for (uint64_t i = 0; i < options->actors; i++)
		spawn(outside, &supervisor_function, self_pid(outside), integer((int64_t)requests));
	result.is_right = wait_for_done(outside, options, options->actors, &made);
	result.is_right &=
		made <= requests * options->actors && (options->seconds > 0 || made == requests * options->actors);
	result.messages = made * 2;
	result.calls = made * 2;
	snprintf(result.text, sizeof result.text,
		 "%" PRIu64 " supervisors made %" PRIu64 " requests, and every crashed account was started again",
		 options->actors, made);
	return result;
}

const struct load bank_load = {"bank", "accounts crash, supervisors start them again", 10, 200000, run, declare};
