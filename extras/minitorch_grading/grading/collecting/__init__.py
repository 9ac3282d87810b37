"""Getting work in: `minitorch collect`.

The data that flows: a folder or a zip becomes entries, files that can be read (`entries`); an entry becomes `Handed`,
with who sent it, as the platform says it (`platforms`); what one student handed in at one time for an exercise is an
attempt, kept in `collected/` for good (`attempts`); and of these one is chosen for `submitted/` (`choose`).
"""
