#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every call of libc that our libraries make goes past the jumps that may lie on libc's functions, into copies, and is known not to
#         use the program's malloc or run its code. A call that somebody adds is noticed here, not when it first recurses.
# Method  Of the built libraries: the functions of libc that they import, beside the list below; the kinds of relocations by which they do,
#         beside those that agent/preload/bind.c sets. Of a running program all of whose libc is planted: every slot and every
#         pointer in the agent's writable memory. Controls: a library that breaks each rule, and the program's own slots.
build=$1
. "$(dirname "$0")/lib.sh"
plant_with_traps

# Functions of libc that have been looked at: they neither allocate memory that their caller frees, nor call back into the program, and
# those that wait are called where threads cannot be cancelled.
cat >known <<'K'
__cxa_finalize __errno_location __register_atfork __stack_chk_fail __tls_get_addr
abort dl_iterate_phdr dladdr dladdr1 dlerror dlinfo dlopen dlsym dlvsym
aligned_alloc calloc free malloc realloc
bcmp fnmatch memchr memcmp memcpy memmem memmove memset mempcpy rawmemchr stpcpy stpncpy strcat strchr strchrnul strcmp strcpy strcspn strlen strncat strncmp
strncpy strnlen strpbrk strrchr strsep strspn strstr strtod_l strtok_r strtol strtoll strtoul strtoull
fwrite fputc fputs inet_ntop putc sprintf snprintf sscanf vsnprintf
freelocale frexp ldexp newlocale
exit getauxval getegid getenv geteuid getgid gethostname getpid getppid getrandom getrlimit getuid kill secure_getenv setrlimit sysconf
clock_gettime nanosleep sched_getaffinity sched_setaffinity sched_yield time
close closedir dirfd fchmod fcntl fgetxattr fstat fstatat fstatfs fsync ftruncate isatty lseek lstat mkdir mkostemp open opendir pread pwrite read readdir readlink realpath
rename rmdir stat unlink unlinkat write
getpeername getsockname getsockopt
madvise mmap mprotect munlockall munmap process_vm_readv process_vm_writev
pthread_attr_destroy pthread_attr_init pthread_attr_setdetachstate pthread_attr_setstacksize pthread_clockjoin_np pthread_create pthread_detach pthread_join pthread_key_create pthread_once pthread_self pthread_setcancelstate pthread_setspecific
pthread_sigmask pthread_tryjoin_np ptrace sigfillset waitid waitpid
K
cat >imports.py <<'P'
import re, subprocess, sys
known, library = set(open("known").read().split()), sys.argv[1]
name_of = library.rsplit("/", 1)[-1]
told, data = [], set()
for line in subprocess.run(["readelf", "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout.splitlines():
    words = line.split()
    if len(words) > 7 and words[3] == "OBJECT":
        data.add(words[7].split("@")[0])
for line in subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout.splitlines():
    words = line.split()
    if len(words) < 5 or not words[2].startswith("R_X86_64_"):
        continue
    symbol, _, version = words[4].partition("@")
    if not version.startswith("GLIBC_"):
        continue
    # As fortified, and as C99 has it: the same function.
    plain = re.sub("^__isoc(99|23)_", "", re.sub("^__(.*)_chk$", r"\1", symbol))
    kind = words[2]
    if kind.startswith(("R_X86_64_JUMP_SLO", "R_X86_64_GLOB_DAT")):
        if plain in known or symbol in data or "--any" in sys.argv:
            continue
        told.append(f"{name_of} calls {symbol}() of libc, which is not on the list of this test. If it allocates memory that its caller "
                    "frees, give agent/preload/libc.c a version of our own; if it calls back or waits, see the others of that kind; then "
                    "put it on the list.")
    elif symbol not in data:
        told.append(f"{name_of} holds a pointer to {symbol}() of libc in its data ({kind}): bind.c does not lead calls through it past "
                    "the jump on a traced function. Call it by its name.")
print("\n".join(told))
sys.exit(bool(told))
P
expect 0 python3 imports.py "$build/lib/libtracewheel-agent.so"
# What a program uses of the library itself is code of that program: it may allocate, but has no such pointers either.
expect 0 python3 imports.py "$build/lib/libtracewheel.so" --any
# No other library is called, whose own calls nobody has looked at.
readelf -dW "$build/lib/libtracewheel-agent.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE 'libgmp\.so\.10|libc\.so\.6|ld-linux-x86-64\.so\.2|libm\.so\.6' >out
[ ! -s out ] || fail "libtracewheel-agent.so needs another library: if our code calls functions of libc through it, these are events"

cat >broken.c <<'C'
#include <stdio.h>
#include <stdlib.h>
void (*release)(void *) = free;
long broken(char **line, size_t *bytes, FILE *file) { return getline(line, bytes, file); }
C
gcc -O1 -fPIC -shared -o libbroken.so broken.c || fail "gcc"
expect 1 python3 imports.py ./libbroken.so
shows 'libbroken.so calls getline() of libc, which is not on the list of this test'
shows 'libbroken.so holds a pointer to free() of libc in its data (R_X86_64_64)'

# ---- in a program all of whose libc is planted ----
cat >looks.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The function of libc that begins there, if a jump was written over its first instructions. */
static const char *planted(const void *address)
{
	const uint8_t *at = address;
	Dl_info info, other;
	int32_t distance;

	const ElfW(Sym) *symbol = NULL;

	if (!dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !strstr(info.dli_fname, "/libc.so") || !info.dli_sname ||
	    info.dli_saddr != address)
		return NULL;
	/* A variable may have any bytes. */
	if (symbol && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT)
		return NULL;
	if (!memcmp(at, "\xf3\x0f\x1e\xfa", 4))
		at += 4;
	memcpy(&distance, at + 1, sizeof distance);
	return *at == 0xe9 && !dladdr(at + 5 + distance, &other) ? info.dli_sname : NULL;
}

/* A function of libc that the library wraps: its own calls of that are the program's. */
static int wraps(const struct link_map *map, const char *function, const void *address)
{
	void *library = dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD), *found = library ? dlsym(library, function) : NULL;

	return found && found != address;
}

int main(int argc, char **argv)
{
	struct link_map *map;
	uintptr_t low = 0, high = 0; /* of what is read-only when ld.so is done: all slots */
	size_t past = 0;
	Dl_info info;

	(void)argc;
	dlinfo(dlopen(NULL, RTLD_NOW), RTLD_DI_LINKMAP, &map);
	while (map && (*argv[1] ? !strstr(map->l_name, argv[1]) : *map->l_name))
		map = map->l_next;
	const ElfW(Ehdr) *header = (const void *)map->l_addr;
	const ElfW(Phdr) *segment = (const void *)(map->l_addr + header->e_phoff);

	for (unsigned i = 0; i < header->e_phnum; i++)
		if (segment[i].p_type == PT_GNU_RELRO) {
			low = map->l_addr + segment[i].p_vaddr;
			high = low + segment[i].p_memsz;
		}
	for (unsigned i = 0; i < header->e_phnum; i++)
		for (size_t at = 0; segment[i].p_type == PT_LOAD && segment[i].p_flags & PF_W && at + 8 <= segment[i].p_memsz; at += 8) {
			void **word = (void **)(map->l_addr + segment[i].p_vaddr + at);
			const char *function = planted(*word);

			if (function && !wraps(map, function, *word))
				printf("%s keeps a pointer to %s() of libc, on which a jump lies: a call through it is an event\n", argv[1], function);
			/* Copies lie in no object. */
			past += (uintptr_t)word >= low && (uintptr_t)word < high && (uintptr_t)*word >= UINT64_C(1) << 32 && !dladdr(*word, &info);
		}
	printf("%s\n", past > 80 ? "others lead past" : "nothing leads past");
	return 0;
}
C
gcc -O1 -o looks looks.c -ldl -Wl,-z,now -Wl,--build-id || fail "gcc"
expect 0 "$tw" record -q --force --local -t 'libc:_' -o looks.tw -- ./looks libtracewheel-agent
is "$(cat out)" "others lead past"
expect 0 "$tw" record -q --force --local -t 'libc:_' -o looks.tw -- ./looks ''
shows ' keeps a pointer to puts() of libc'
