"""Who is in the course (`roster`), and until when work may be handed in (`deadlines`)."""
