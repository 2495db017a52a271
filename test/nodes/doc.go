// Package nodes runs many API processes, each on a loopback address of its own as each would have a host of its own, and several
// consumers, in one rush through a door that spreads the buyers over them as a balancer does.
//
// In the small form, a part of every test run, nodes join and leave in the rush. With -nodes.table it holds a rush over each of 1, 2,
// 4 and 8 APIs with 1 to 4 consumers, and prints what each node kept and asked for: docs/how-to/scale.md, "Many nodes".
package nodes
