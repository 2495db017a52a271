-- +goose Up
-- How often admitters had moved the line when turns was read from Redis. A room that a promoted replica
-- has of an earlier call is older than turns.
ALTER TABLE waiting_rooms ADD COLUMN calls BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE waiting_rooms DROP COLUMN calls;
