namespace pulse {}
