package rules

// defaults are the rules of every installation. /randomPath has 1000/s for each goods over all
// nodes. It has 20/s for each user in each node's memory, which costs no call to Redis. Signing in
// has 20/s for each address, also in each node's memory; so have API keys that are not valid, on
// all routes together. They need no file, because a sale without a rule would have no protection.
const defaults = `
rules:
  - {name: randomPath, route: /randomPath, by: [goods], permitsPerSecond: 1000, leases: 10}
  - {name: randomPathPerUser, route: /randomPath, by: [user], scope: node,
     algorithm: token_bucket, permitsPerSecond: 20}
  - {name: session, route: POST /session, by: [ip], scope: node,
     algorithm: token_bucket, permitsPerSecond: 20, maxBurstSeconds: 2}
  - {name: failedApiKey, by: [ip], scope: node,
     algorithm: token_bucket, permitsPerSecond: 20, maxBurstSeconds: 2}
  - {name: signIn, route: /session/callback, by: [ip], scope: node,
     algorithm: token_bucket, permitsPerSecond: 20, maxBurstSeconds: 2}
`

// Defaults returns the default rules.
func Defaults() []Rule {
	rules, err := Parse([]byte(defaults))
	if err != nil {
		panic(err)
	}
	return rules
}
