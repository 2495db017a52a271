package seckill

// OrUnavailable leaves a refusal as it is and makes anything else an Unavailable.
func OrUnavailable(err error, what string) error {
	if err == nil || ReasonOf(err) != "" {
		return err
	}
	return NewUnavailable(what, err)
}
