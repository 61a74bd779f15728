-- Which of a program's two streams a piece of log came from: 0 the ordinary one, 1 the one for errors. Older programs do not
-- name the column, and what they write is ordinary.
ALTER TABLE logs ADD COLUMN stream INTEGER NOT NULL DEFAULT 0;
