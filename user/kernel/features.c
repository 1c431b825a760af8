// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

size_t rs_kernel_features(struct rs_feature *ret, size_t max)
{
	(void)ret;
	(void)max;
	return 0;
}
