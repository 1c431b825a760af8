// SPDX-License-Identifier: Apache-2.0

// Package constants stands for a module of the Datadog agent's that the module proxy does not have. Nothing of tracing
// is in it: what its configuration package takes from there is defaults of other parts of the agent.
package constants

const (
	DefaultEBPFLessProbeAddr    = "localhost:5678"
	DefaultProcessCmdPort       = 6162
	DefaultSecurityAgentCmdPort = 5010
)

type ConfigurationProviders struct{ Name string }
