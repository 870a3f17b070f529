/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pay.c - a library without symbols, in which a call fails; the subject of a question in docs/questions.md.
 *
 *	cc -O1 -shared -fPIC -fvisibility=hidden -s -o libpay.so pay.c
 *	cc -O1 -o pay -DMAIN pay.c -L. -lpay -Wl,-rpath,.
 */
#ifdef MAIN
#include <stdio.h>
int pay_open(const char *account);

int main(void)
{
	if (pay_open("/var/lib/pay/account"))
		return 0;
	fprintf(stderr, "pay: cannot start\n");
	return 1;
}
#else
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

__attribute__((noinline)) static int read_key(const char *account)
{
	int file = open(account, O_RDONLY);

	if (file < 0)
		return -errno;
	close(file);
	return 0;
}

__attribute__((noinline)) static int unlock(const char *account)
{
	return read_key(account) < 0 ? -EACCES : 1;
}

__attribute__((visibility("default"))) int pay_open(const char *account)
{
	return unlock(account) > 0;
}
#endif
