// SPDX-License-Identifier: Apache-2.0
#include "proto.h"

#define RS_PROTO(name) extern const struct rs_proto_ops rs_proto_##name;
#include "protocols.def"
#undef RS_PROTO

const struct rs_proto_ops *const rs_protos[RS_PROTO_COUNT] = {
#define RS_PROTO(name) [RS_PROTO_##name] = &rs_proto_##name,
#include "protocols.def"
#undef RS_PROTO
};
