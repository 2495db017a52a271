package installation

import (
	"fmt"
	"slices"
	"strings"
)

// Topology is the set of servers that run as clusters. The installation's handle of such a server
// (Redis, Rabbit, SQL) is the important member for the sale. This is the master that stores it, the
// node that leads its queue, or the primary.
type Topology uint8

// The clusters.
const (
	RedisCluster  Topology = 1 << iota // three masters, each with a replica
	RabbitCluster                      // three nodes with quorum queues
	MySQLGroup                         // three members with a single primary
)

// clusterNames are the names of the clusters, in their order.
func clusterNames() []string { return []string{"redis-cluster", "rabbit-cluster", "mysql-group"} }

// ParseTopology parses a comma-separated list of names. "clusters" stands for all three, "" for
// none.
func ParseTopology(list string) (set Topology, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(clusterNames(), name)
		switch {
		case i >= 0:
			set |= 1 << i
		case name == "clusters":
			set = RedisCluster | RabbitCluster | MySQLGroup
		case name != "":
			return set, fmt.Errorf("there is no topology %q", name)
		}
	}
	return set, nil
}

// Has reports whether a server is a cluster.
func (s Topology) Has(cluster Topology) bool { return s&cluster != 0 }

// String returns the list for ParseTopology. It is "" if all servers are single.
func (s Topology) String() string {
	var names []string
	for i, name := range clusterNames() {
		if s.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
