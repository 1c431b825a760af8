/* SPDX-License-Identifier: Apache-2.0 */
/* docs — the manual page and the shell completion, made from the same lists as the parser and --help. */
#ifndef RS_DOCS_H
#define RS_DOCS_H

#include <stdio.h>

/* ringspan(1) in man's language. */
void rs_docs_man(FILE *out);
/* A config file with every option that `run` takes, explained; all of them commented out. */
void rs_docs_sample(FILE *out);
/* A completion script for bash. */
void rs_docs_bash(FILE *out);

#endif
