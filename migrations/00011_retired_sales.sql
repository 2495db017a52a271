-- +goose Up
-- When a sale was found to be over for good: ended or closed a day ago, all of its orders final, nothing on its way. Redis is
-- free to forget it then, and the background work looks after it no more. NULL before, and again as soon as anything of
-- it changes. No index: those by status and by closing time serve.
ALTER TABLE sales ADD COLUMN retired_at BIGINT NULL;

-- +goose Down
ALTER TABLE sales DROP COLUMN retired_at;
