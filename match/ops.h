/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the instructions of match programs and the functions that they call.
 *
 * A program works on a stack of terms, on variables (bound inside arguments) and on the arguments.  All jumps go
 * forward.  `fail' is the instruction to continue at when the clause does not match; the stack is empty there.  In
 * bodies fail is 0, and a failing instruction yields the atom 'EXIT' as its value.
 *
 *	fail is c and the target of a plain jump is d, both indices of instructions
 *	a, b and what they index: as said at each
 */
#ifndef TW_MATCH_OPS_H
#define TW_MATCH_OPS_H

/*
 * X(OP, name, a, b, c, pops, pushes): the kind of each operand, and its effect on the stack.  Counts that depend on an
 * operand are computed by the verifier and are 0 here.
 *
 * Kinds: NO must be 0; NUMBER any; FLAG, CONSTANT, RANGE, ARGUMENT, VARIABLE, TYPE, COMPARISON, FUNCTION, ACTIONS as
 * the name says; FAIL a later instruction; EXIT the same, or 0 in bodies.
 */
/* These need neither stack nor memory and run in the small loop, front.h. */
#define TW_MATCH_FRONT_OPS(X)                                                                                       \
	X(ARITY, "arity", FLAG, NUMBER, FAIL, 0, 0)	     /* b arguments; a = 1: at least b */                   \
	X(RANGE, "range", ARGUMENT, RANGE, FAIL, 0, 0)	     /* a small inside range b: jump to d; outside: fail */ \
	X(MASK, "mask", ARGUMENT, RANGE, FAIL, 0, 0)	     /* the same for a small whose bits `low' are `span' */ \
	X(MASK_NOT, "mask_not", ARGUMENT, RANGE, FAIL, 0, 0) /* ... are not */                                      \
	X(STRING, "string", ARGUMENT, CONSTANT, FAIL, 0, 0)  /* the string at a word is b: jump to d; else: fail */ \
	X(STRING_NOT, "string_not", ARGUMENT, CONSTANT, FAIL, 0, 0)                                                 \
	X(ARG_IS, "arg_is", ARGUMENT, CONSTANT, FAIL, 0, 0) /* is the same word as an immediate constant */         \
	X(ARG_TYPE, "arg_type", ARGUMENT, TYPE, FAIL, 0, 0)                                                         \
	X(ACCEPT, "accept", ACTIONS, CONSTANT, NO, 0, 0) /* matched: message b and actions a */                     \
	X(REJECT, "reject", NO, NO, NO, 0, 0)

#define TW_MATCH_OTHER_OPS(X)                                                                                 \
	/* Values. */                                                                                         \
	X(ARG, "arg", NO, ARGUMENT, EXIT, 0, 1)                                                               \
	X(WHOLE, "whole", NO, NO, EXIT, 0, 1) /* the list of all arguments */                                 \
	X(VAR, "var", NO, VARIABLE, NO, 0, 1)                                                                 \
	X(CONST, "const", NO, CONSTANT, NO, 0, 1)                                                             \
	X(POP, "pop", NO, NO, NO, 1, 0)                                                                       \
	X(TUPLE, "tuple", NO, NUMBER, EXIT, 0, 0) /* of b values, the first on top */                         \
	X(CONS, "cons", NO, NO, EXIT, 2, 1)	  /* head on top of tail */                                   \
	X(SNOC, "snoc", NO, NO, EXIT, 2, 1)	  /* tail on top of head */                                   \
	X(MAP, "map", NO, NUMBER, EXIT, 0, 0)	  /* of b keys, the first on top, over b values */            \
	/* Patterns. */                                                                                       \
	X(BIND, "bind", NO, VARIABLE, NO, 1, 0)                                                               \
	X(MATCH_VAR, "match_var", NO, VARIABLE, FAIL, 1, 0)                                                   \
	X(MATCH_ARG, "match_arg", NO, ARGUMENT, FAIL, 1, 0)                                                   \
	X(MATCH_CONST, "match_const", NO, CONSTANT, FAIL, 1, 0)                                               \
	X(MATCH_TUPLE, "match_tuple", NO, NUMBER, FAIL, 1, 1) /* the top is a tuple of b elements */          \
	X(ELEMENT, "element", NO, NUMBER, FAIL, 1, 2)	      /* push element b of the tuple on top */        \
	X(MATCH_CONS, "match_cons", NO, NO, FAIL, 1, 2)	      /* a cell becomes tail and, on top, head */     \
	X(MATCH_MAP, "match_map", NO, NO, FAIL, 1, 1)	      /* the top is a map */                          \
	X(MATCH_KEY, "match_key", NO, CONSTANT, FAIL, 1, 2)   /* push the value of key b of the map on top */ \
	/* Expressions. */                                                                                    \
	X(TEST, "test", TYPE, NO, NO, 1, 1)                                                                   \
	X(COMPARE, "compare", COMPARISON, NO, EXIT, 2, 1) /* the left operand on top */                       \
	X(AND, "and", NO, NUMBER, EXIT, 0, 0)                                                                 \
	X(OR, "or", NO, NUMBER, EXIT, 0, 0)                                                                   \
	X(ANDALSO, "andalso", NO, NO, EXIT, 0, 0) /* false on top: keep it and jump to d; true: drop it */    \
	X(ORELSE, "orelse", NO, NO, EXIT, 0, 0)	  /* the other way round */                                   \
	X(CALL, "call", FUNCTION, NO, EXIT, 0, 0) /* arguments, the first on top, become the value */         \
	X(GUARD, "guard", NO, NO, FAIL, 1, 0)	  /* anything but true fails */                               \
	/* Actions. */                                                                                        \
	X(MESSAGE, "message", NO, NO, NO, 1, 1)                                                               \
	X(SILENT, "silent", NO, NO, NO, 1, 1)                                                                 \
	X(ACTION, "action", ACTIONS, NO, NO, 0, 1)                                                            \
	X(HALT, "halt", NO, NO, NO, 0, 0)     /* matched, with the message and actions set before */          \
	X(RESULT, "result", NO, NO, NO, 1, 0) /* matched: the message is the top */

#define TW_MATCH_OPS(X) TW_MATCH_FRONT_OPS(X) TW_MATCH_OTHER_OPS(X)

enum tw_match_op {
#define TW_MATCH_OP_ENUM(op, name, a, b, c, pops, pushes) TW_OP_##op,
	TW_MATCH_OPS(TW_MATCH_OP_ENUM)
#undef TW_MATCH_OP_ENUM
		TW_OP_COUNT,
};

/* The type tests by function name; FUNCTION has one argument. */
#define TW_MATCH_TYPES(X) \
	X(IS_ATOM)        \
	X(IS_BOOLEAN)     \
	X(IS_FLOAT)       \
	X(IS_INTEGER)     \
	X(IS_LIST)        \
	X(IS_NUMBER)      \
	X(IS_PID)         \
	X(IS_PORT)        \
	X(IS_REFERENCE)   \
	X(IS_TUPLE)       \
	X(IS_MAP)         \
	X(IS_BINARY)      \
	X(IS_BITSTRING)   \
	X(IS_FUNCTION)

enum tw_match_type {
#define TW_MATCH_TYPE_ENUM(atom) TW_MATCH_##atom,
	TW_MATCH_TYPES(TW_MATCH_TYPE_ENUM)
#undef TW_MATCH_TYPE_ENUM
		TW_MATCH_TYPE_COUNT,
};

#define TW_MATCH_COMPARISONS(X) X(LT) X(LE) X(GT) X(GE) X(EQ) X(NE) X(EXACT_EQ) X(EXACT_NE)

enum tw_match_comparison {
#define TW_MATCH_COMPARISON_ENUM(atom) TW_MATCH_##atom,
	TW_MATCH_COMPARISONS(TW_MATCH_COMPARISON_ENUM)
#undef TW_MATCH_COMPARISON_ENUM
		TW_MATCH_COMPARISON_COUNT,
};

/* Restrictions on the use of a function. */
enum {
	TW_MATCH_IN_BODY_ONLY = 1, /* refused by guards */
	TW_MATCH_NOT_IN_TABLE = 2, /* meaningful in tracing only */
	TW_MATCH_NOT_IN_SEND = 4,
	TW_MATCH_NOT_IN_RECEIVE = 8,
	TW_MATCH_HAS_EFFECT = 16, /* the order of evaluation is visible */
};
#define TW_MATCH_OF_PROCESS (TW_MATCH_IN_BODY_ONLY | TW_MATCH_NOT_IN_TABLE | TW_MATCH_NOT_IN_RECEIVE)
#define TW_MATCH_OF_CALL    (TW_MATCH_OF_PROCESS | TW_MATCH_NOT_IN_SEND)
#define TW_MATCH_OF_WORDS   (TW_MATCH_NOT_IN_TABLE | TW_MATCH_NOT_IN_SEND | TW_MATCH_NOT_IN_RECEIVE)
#define TW_MATCH_ACTS	    (TW_MATCH_OF_PROCESS | TW_MATCH_HAS_EFFECT)

/* X(ATOM, arity, restrictions): called by the CALL instruction; the code is match_fn_ATOM_arity. */
#define TW_MATCH_FUNCTIONS(X)                                                              \
	X(NOT, 1, 0)                                                                       \
	X(XOR, 2, 0)                                                                       \
	X(IS_RECORD, 3, 0)                                                                 \
	X(IS_MAP_KEY, 2, 0)                                                                \
	X(MAP_GET, 2, 0)                                                                   \
	X(MAP_SIZE, 1, 0)                                                                  \
	X(ADD, 1, 0)                                                                       \
	X(ADD, 2, 0)                                                                       \
	X(SUB, 1, 0)                                                                       \
	X(SUB, 2, 0)                                                                       \
	X(MUL, 2, 0)                                                                       \
	X(DIVIDE, 2, 0)                                                                    \
	X(DIV, 2, 0)                                                                       \
	X(REM, 2, 0)                                                                       \
	X(ABS, 1, 0)                                                                       \
	X(BAND, 2, 0)                                                                      \
	X(BOR, 2, 0)                                                                       \
	X(BXOR, 2, 0)                                                                      \
	X(BNOT, 1, 0)                                                                      \
	X(BSL, 2, 0)                                                                       \
	X(BSR, 2, 0)                                                                       \
	X(ROUND, 1, 0)                                                                     \
	X(TRUNC, 1, 0)                                                                     \
	X(FLOOR, 1, 0)                                                                     \
	X(CEIL, 1, 0)                                                                      \
	X(FLOAT, 1, 0)                                                                     \
	X(MAX, 2, 0)                                                                       \
	X(MIN, 2, 0)                                                                       \
	X(ELEMENT, 2, 0)                                                                   \
	X(HD, 1, 0)                                                                        \
	X(TL, 1, 0)                                                                        \
	X(LENGTH, 1, 0)                                                                    \
	X(SIZE, 1, 0)                                                                      \
	X(TUPLE_SIZE, 1, 0)                                                                \
	X(BYTE_SIZE, 1, 0)                                                                 \
	X(BIT_SIZE, 1, 0)                                                                  \
	X(BINARY_PART, 2, 0)                                                               \
	X(BINARY_PART, 3, 0)                                                               \
	X(NODE, 0, 0)                                                                      \
	X(NODE, 1, 0)                                                                      \
	X(SELF, 0, 0)                                                                      \
	X(IS_SEQ_TRACE, 0, TW_MATCH_NOT_IN_TABLE | TW_MATCH_NOT_IN_RECEIVE)                \
	X(GET_TCW, 0, TW_MATCH_NOT_IN_TABLE | TW_MATCH_HAS_EFFECT)                         \
	X(SET_TCW, 1, TW_MATCH_IN_BODY_ONLY | TW_MATCH_NOT_IN_TABLE | TW_MATCH_HAS_EFFECT) \
	X(ENABLE_TRACE, 1, TW_MATCH_ACTS)                                                  \
	X(ENABLE_TRACE, 2, TW_MATCH_ACTS)                                                  \
	X(DISABLE_TRACE, 1, TW_MATCH_ACTS)                                                 \
	X(DISABLE_TRACE, 2, TW_MATCH_ACTS)                                                 \
	X(TRACE, 2, TW_MATCH_ACTS)                                                         \
	X(TRACE, 3, TW_MATCH_ACTS)                                                         \
	X(SET_SEQ_TOKEN, 2, TW_MATCH_ACTS)                                                 \
	X(GET_SEQ_TOKEN, 0, TW_MATCH_ACTS)                                                 \
	X(CALLER, 0, TW_MATCH_OF_CALL)                                                     \
	X(CALLER_LINE, 0, TW_MATCH_OF_CALL)                                                \
	X(CURRENT_STACKTRACE, 0, TW_MATCH_OF_CALL)                                         \
	X(CURRENT_STACKTRACE, 1, TW_MATCH_OF_CALL)                                         \
	X(PROCESS_DUMP, 0, TW_MATCH_OF_PROCESS)                                            \
	X(DISPLAY, 1, TW_MATCH_IN_BODY_ONLY | TW_MATCH_NOT_IN_TABLE | TW_MATCH_HAS_EFFECT) \
	X(STRING_AT, 1, TW_MATCH_OF_WORDS)                                                 \
	X(VECTOR_FLOAT, 1, TW_MATCH_OF_WORDS)                                              \
	X(VECTOR_DOUBLE, 1, TW_MATCH_OF_WORDS)

enum tw_match_function {
#define TW_MATCH_FUNCTION_ENUM(atom, arity, where) TW_FN_##atom##_##arity,
	TW_MATCH_FUNCTIONS(TW_MATCH_FUNCTION_ENUM)
#undef TW_MATCH_FUNCTION_ENUM
		TW_FN_COUNT,
};

#endif
