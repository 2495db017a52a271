// Package e2e tests whole installations: the project's programs as processes on real servers.
//
// The programs are built once and the servers are shared (see TestMain). Tests that do not disturb
// one another share an installation too, as subtests: TestInstallation (rushes, malformed requests,
// seckillctl, exports), TestTracing, TestMetrics. A test that kills a program or a server has its
// own.
package e2e
