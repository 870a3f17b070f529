/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_file.c - names of code made at run time, by the interface for just-in-time compilers.
 *
 * Its two symbols are found by their names in each object's own symbol table.  They are local here: exported, they would
 * take the place of those of a compiler in the program.  So the interface is not there in a stripped library.
 */
#include "breakpoints/debug_file.h"

#include <elf.h>
#include <string.h>

enum { NO_ACTION, REGISTER, UNREGISTER };

enum section { NONE, CODE, FRAMES, SYMBOLS, STRINGS, SECTIONS };
_Static_assert(sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr) <= TW_DEBUG_HEAD_BYTES, "the head has space");
_Static_assert(sizeof(Elf64_Sym) == TW_DEBUG_SYMBOL_BYTES, "the symbols have space");

static const char section_names[] = "\0.text\0.eh_frame\0.symtab\0.strtab";
static const uint8_t name_at[SECTIONS] = {[CODE] = 1, [FRAMES] = 7, [SYMBOLS] = 17, [STRINGS] = 25};

__attribute__((used)) static struct {
	uint32_t version;
	uint32_t action;
	struct tw_debug_entry *relevant, *first;
} __jit_debug_descriptor = {.version = 1};

/* The debugger stops here. */
__attribute__((noinline, used)) static void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

static void tell(struct tw_debug_file *file, uint32_t action)
{
	__jit_debug_descriptor.action = action;
	__jit_debug_descriptor.relevant = &file->entry;
	__jit_debug_register_code();
	__jit_debug_descriptor.action = NO_ACTION;
	__jit_debug_descriptor.relevant = NULL;
}

void tw_debug_file_begin(struct tw_debug_file *file)
{
	file->symbol_count = 1;
	file->string_bytes = sizeof section_names;
	file->has_news = false;
	memcpy(file->strings, section_names, sizeof section_names);
}

void tw_debug_file_add(struct tw_debug_file *file, const uint8_t *start, uint32_t bytes, const char *name)
{
	static const char mark[] = ".traced";
	size_t name_bytes = strlen(name);
	char *string = file->strings + file->string_bytes;
	Elf64_Sym symbol = {.st_name = file->string_bytes,
			    .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			    .st_shndx = CODE,
			    .st_value = (uintptr_t)start,
			    .st_size = bytes};

	if (file->symbol_count == file->symbols_max ||
	    name_bytes + sizeof mark > file->string_bytes_max - file->string_bytes)
		return;
	memcpy(string, name, name_bytes);
	memcpy(string + name_bytes, mark, sizeof mark);
	memcpy(file->symbols + (size_t)file->symbol_count * sizeof symbol, &symbol, sizeof symbol);
	file->string_bytes += (uint32_t)(name_bytes + sizeof mark);
	file->symbol_count++;
	file->has_news = true;
}

static Elf64_Shdr section(const struct tw_debug_file *file, enum section number, uint32_t type, const void *at,
			  uint64_t bytes)
{
	return (Elf64_Shdr){.sh_name = name_at[number],
			    .sh_type = type,
			    .sh_addr = number <= FRAMES ? (uintptr_t)at : 0,
			    .sh_offset = number == CODE ? 0 : (uint64_t)((const uint8_t *)at - file->head),
			    .sh_size = bytes,
			    .sh_flags = number == CODE	   ? SHF_ALLOC | SHF_EXECINSTR
					: number == FRAMES ? SHF_ALLOC
							   : 0,
			    .sh_addralign = number == SYMBOLS ? 8 : 1};
}

static void write_head(struct tw_debug_file *file)
{
	const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
				   .e_type = ET_EXEC,
				   .e_machine = EM_X86_64,
				   .e_version = EV_CURRENT,
				   .e_shoff = sizeof header,
				   .e_ehsize = sizeof header,
				   .e_shentsize = sizeof(Elf64_Shdr),
				   .e_shnum = SECTIONS,
				   .e_shstrndx = STRINGS};
	Elf64_Shdr sections[SECTIONS] = {
		[CODE] = section(file, CODE, SHT_NOBITS, file->code, file->code_bytes),
		[FRAMES] = section(file, FRAMES, SHT_PROGBITS, file->frames, file->frame_bytes),
		[SYMBOLS] = section(file, SYMBOLS, SHT_SYMTAB, file->symbols, file->symbol_count * sizeof(Elf64_Sym)),
		[STRINGS] = section(file, STRINGS, SHT_STRTAB, file->strings, file->string_bytes),
	};

	sections[SYMBOLS].sh_link = STRINGS;
	sections[SYMBOLS].sh_info = file->symbol_count;
	sections[SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
	memcpy(file->head, &header, sizeof header);
	memcpy(file->head + sizeof header, sections, sizeof sections);
}

void tw_debug_file_hide(struct tw_debug_file *file)
{
	struct tw_debug_entry *entry = &file->entry;

	if (!file->is_shown)
		return;
	if (entry->next)
		entry->next->previous = entry->previous;
	if (entry->previous)
		entry->previous->next = entry->next;
	else
		__jit_debug_descriptor.first = entry->next;
	tell(file, UNREGISTER);
	file->is_shown = false;
}

void tw_debug_file_show(struct tw_debug_file *file)
{
	struct tw_debug_entry *entry = &file->entry;

	if (!file->has_news)
		return;
	tw_debug_file_hide(file);
	write_head(file);
	*entry = (struct tw_debug_entry){.next = __jit_debug_descriptor.first,
					 .file = file->head,
					 .bytes = (uint64_t)((uint8_t *)file->strings + file->string_bytes -
							     file->head)};
	if (entry->next)
		entry->next->previous = entry;
	__jit_debug_descriptor.first = entry;
	file->is_shown = true;
	file->has_news = false;
	tell(file, REGISTER);
}
