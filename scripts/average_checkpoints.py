"""`vanilla-transformer average-checkpoints`, from a checkout."""

from hf_vanilla_transformer.commands.average_checkpoints import main


if __name__ == "__main__":
    main()
