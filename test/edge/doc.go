// Package edge tests deploy/nginx on a real nginx. It runs the deployed files, but replaces those
// in site/. The upstream is a stub that counts requests, or the real API on real servers.
package edge
