// Package shipping keeps where orders go, which their buyers enter, and how merchants sent them.
package shipping
