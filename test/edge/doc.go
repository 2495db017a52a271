// Package edge tests deploy/nginx on a real nginx: the very files of the installation, with those
// in site/ replaced by the test's. What stands behind it is a stand-in that counts, or the real API
// on real servers.
package edge
