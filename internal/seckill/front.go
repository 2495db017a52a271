package seckill

func NewNoSuchSale() error { return NewError(NotFound, "there is no such sale") }
